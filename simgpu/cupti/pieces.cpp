#include "simgpu/cupti/pieces.h"

#include <mutex>

namespace simgpu::cupti {

namespace {

// Blocks: so many that malloc maps them, and a page is there only once a block in it is used.
constexpr size_t kSlab = 256;

struct Unused {
  std::mutex mutex;
  void* given_back = nullptr;  // blocks by their links
  void* slab = nullptr;        // of the newest the next block that was never used
  size_t left_in_slab = 0;
};

Unused& unused() {
  static auto* const kUnused = new Unused;  // never destroyed, as the collector
  return *kUnused;
}

}  // namespace

Pieces::Block* Pieces::take() {
  Unused& u = unused();
  std::lock_guard lock(u.mutex);
  auto* block = static_cast<Block*>(u.given_back);
  if (block != nullptr) {
    u.given_back = block->next;
  } else {
    if (u.left_in_slab == 0) {
      u.slab = ::operator new(kSlab * sizeof(Block));
      u.left_in_slab = kSlab;
    }
    block = static_cast<Block*>(u.slab);
    u.slab = block + 1;
    --u.left_in_slab;
  }
  block->next = nullptr;
  return block;
}

void Pieces::give_back(Block* first) {
  if (first == nullptr) return;
  Block* last = first;
  while (last->next != nullptr) last = last->next;
  Unused& u = unused();
  std::lock_guard lock(u.mutex);
  last->next = static_cast<Block*>(u.given_back);
  u.given_back = first;
}

}  // namespace simgpu::cupti
