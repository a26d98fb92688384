#include "analysis/read/kept_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace gputrace {
namespace {

struct Block {
  void* at;
  std::size_t bytes;
};

struct Kept {
  std::mutex mutex;
  std::vector<Block> blocks;
  unsigned holders = 0;
};

Kept& kept() {
  static Kept all;
  return all;
}

void* take_kept(std::size_t bytes) {
  Kept& all = kept();
  std::lock_guard lock(all.mutex);
  const auto same = [bytes](const Block& block) { return block.bytes == bytes; };
  const auto found = std::find_if(all.blocks.rbegin(), all.blocks.rend(), same);
  if (found == all.blocks.rend()) return nullptr;
  void* const at = found->at;
  all.blocks.erase(std::next(found).base());
  return at;
}

bool keep(const Block& block) noexcept try {
  Kept& all = kept();
  std::lock_guard lock(all.mutex);
  if (all.holders == 0) return false;
  all.blocks.push_back(block);
  return true;
} catch (...) {
  return false;  // no memory to note it: it goes
}

}  // namespace

KeptPages::KeptPages() {
  std::lock_guard lock(kept().mutex);
  ++kept().holders;
}

KeptPages::~KeptPages() {
  std::vector<Block> blocks;
  {
    std::lock_guard lock(kept().mutex);
    if (--kept().holders == 0) blocks.swap(kept().blocks);
  }
  for (const Block& block : blocks) ::munmap(block.at, block.bytes);
}

void* take_pages(std::size_t bytes, bool zeroed) {
  if (bytes == 0) return nullptr;
  if (void* const at = take_kept(bytes)) return zeroed ? std::memset(at, 0, bytes) : at;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  ::madvise(at, bytes, MADV_HUGEPAGE);
  return at;
}

void give_pages(void* at, std::size_t bytes) noexcept {
  if (at && !keep({at, bytes})) ::munmap(at, bytes);
}

}  // namespace gputrace
