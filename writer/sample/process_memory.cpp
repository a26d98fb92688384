#include "writer/sample/process_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gputrace {

bool ProcessMemory::read_directly(u64 address, void* out, u64 size) {
  const iovec here{out, size}, there{reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(process_, &here, 1, &there, 1, 0);
  if (got == static_cast<ssize_t>(size)) return true;
  error_ = got < 0 ? errno : EFAULT;
  return false;
}

const ProcessMemory::Page* ProcessMemory::page_at(u64 address) {
  for (std::size_t i = 0; i < used_; ++i) {
    if (pages_[i]->address == address) return pages_[i].get();
  }
  if (used_ == kMostPages) return nullptr;
  if (used_ == pages_.size()) pages_.push_back(std::make_unique<Page>());
  Page& page = *pages_[used_];
  if (!read_directly(address, page.bytes, kPage)) return nullptr;
  page.address = address;
  ++used_;
  return &page;
}

bool ProcessMemory::read(u64 address, void* out, u64 size) {
  if (address + size < address) return false;
  if (size > kPage) return read_directly(address, out, size);
  auto* to = static_cast<u8*>(out);
  while (size) {
    const u64 offset = address % kPage, part = std::min(size, kPage - offset);
    const Page* page = page_at(address - offset);
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
  bool all = here_.size() <= kMostPieces;
  if (all) {
    const ssize_t got = ::process_vm_readv(process_, here_.data(), here_.size(), there_.data(), there_.size(), 0);
    all = got == static_cast<ssize_t>(wanted_);
    if (!all) error_ = got < 0 ? errno : EFAULT;
  }
  here_.clear();
  there_.clear();
  wanted_ = 0;
  return all;
}

}  // namespace gputrace
