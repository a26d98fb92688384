#include "writer/sample/process_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gputrace {

// All of it, or false.
bool ProcessMemory::take(const iovec* here, const iovec* there, std::size_t count, u64 wanted) {
  ssize_t got = -1;
  if (!by_run_) got = ::process_vm_readv(process_, here, count, there, count, 0);
  if (by_run_ || (got < 0 && errno == EPERM && run_)) {
    got = run_->read(process_, here, there, count);
    by_run_ = by_run_ || got >= 0;
  }
  if (got == static_cast<ssize_t>(wanted)) return true;
  error_ = got < 0 ? errno : EFAULT;
  return false;
}

bool ProcessMemory::read_directly(u64 address, void* out, u64 size) {
  const iovec here{out, size}, there{reinterpret_cast<void*>(address), size};
  return take(&here, &there, 1, size);
}

// nullptr: that many are held already. Not yet counted as used.
ProcessMemory::Page* ProcessMemory::free_page() {
  if (used_ == kMostPages) return nullptr;
  if (used_ == pages_.size()) pages_.push_back(std::make_unique<Page>());
  return pages_[used_].get();
}

const ProcessMemory::Page* ProcessMemory::page_at(u64 address, bool again) {
  if (const auto known = place_of_.find(address); known != place_of_.end()) {
    Page& page = *pages_[known->second];
    page.is_wanted = page.is_wanted || again;
    return &page;
  }
  Page* const page = free_page();
  if (!page || !read_directly(address, page->bytes, kPage)) return nullptr;
  page->address = address;
  page->is_wanted = again;
  place_of_.emplace(address, used_++);
  return page;
}

// Pages that are not here yet.
void ProcessMemory::take_at_once(std::span<const u64> pages) {
  const std::size_t before = used_;
  for (const u64 address : pages) {
    Page* const page = free_page();
    if (!page) break;
    page->address = address;
    page->is_wanted = false;
    add_piece(address, page->bytes, kPage);
    ++used_;
  }
  if (!read_pieces()) used_ = before;  // one is no longer there: each as it is asked for
  for (std::size_t i = before; i < used_; ++i) place_of_.emplace(pages_[i]->address, i);
}

void ProcessMemory::expect(const std::vector<u64>& addresses) {
  expected_.clear();
  for (const u64 address : addresses) {
    const u64 page = address - address % kPage;
    if (place_of_.count(page) == 0) expected_.push_back(page);
  }
  std::sort(expected_.begin(), expected_.end());
  expected_.erase(std::unique(expected_.begin(), expected_.end()), expected_.end());
  const std::span<const u64> all(expected_);
  for (std::size_t at = 0; at < all.size(); at += kMostAtOnce)
    take_at_once(all.subspan(at, std::min(kMostAtOnce, all.size() - at)));
}

void ProcessMemory::look_anew(u64 whose) {
  if (whose_) {
    if (wanted_before_.size() > kMostRemembered) wanted_before_.clear();
    std::vector<u64>& before = wanted_before_[whose_];
    before.clear();
    for (std::size_t i = 0; i < used_ && before.size() < kMostAtOnce; ++i)
      if (pages_[i]->is_wanted) before.push_back(pages_[i]->address);
  }
  used_ = 0;
  place_of_.clear();
  whose_ = whose;
  const auto known = wanted_before_.find(whose);
  if (known != wanted_before_.end() && known->second.size() > 1) take_at_once(known->second);
}

bool ProcessMemory::read(u64 address, void* out, u64 size, bool again) {
  if (address + size < address) return false;
  if (size > kPage) return read_directly(address, out, size);
  auto* to = static_cast<u8*>(out);
  while (size) {
    const u64 offset = address % kPage, part = std::min(size, kPage - offset);
    const Page* page = page_at(address - offset, again);
    if (!page) return read_directly(address, to, size);  // too many pages; where there is none this fails as well
    std::memcpy(to, page->bytes + offset, part);
    address += part, to += part, size -= part;
  }
  return true;
}

void ProcessMemory::add_piece(u64 address, void* out, u64 size) {
  here_.push_back({out, size});
  there_.push_back({reinterpret_cast<void*>(address), size});
  wanted_ += size;
}

bool ProcessMemory::read_pieces() {
  constexpr std::size_t kMostPieces = 1024;  // UIO_MAXIOV
  const bool all = here_.size() <= kMostPieces && take(here_.data(), there_.data(), here_.size(), wanted_);
  here_.clear();
  there_.clear();
  wanted_ = 0;
  return all;
}

}  // namespace gputrace
