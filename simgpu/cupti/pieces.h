// What the collector must know of each record in a client's buffer until it hands the buffer out.
//
//   · Blocks come from slabs and go back to a list: what a thread of thousands needs is there without a call of malloc, whose arenas would grow
//     page by page under the driver's lock.
//   · A list belongs to one buffer, and is under whatever that is under; the list of free blocks has a mutex of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "simgpu/cupti/collector.h"

namespace simgpu::cupti {

struct Piece {
  size_t offset;
  size_t size;
  RecordKind kind;
};

class Pieces {
 public:
  static constexpr size_t kInBlock = 48;

  Pieces() = default;
  Pieces(Pieces&& other) noexcept { swap(other); }
  Pieces& operator=(Pieces&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Pieces() { give_back(first_); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void add(const Piece& piece) {
    const size_t at = size_++ % kInBlock;
    if (at == 0) {
      Block* const fresh = take();
      (last_ != nullptr ? last_->next : first_) = fresh;
      last_ = fresh;
    }
    last_->pieces[at] = piece;
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    size_t left = size_;
    for (const Block* block = first_; block != nullptr; block = block->next) {
      for (size_t i = 0; i < kInBlock && left != 0; ++i, --left) visit(block->pieces[i]);
    }
  }

 private:
  struct Block {
    Block* next;
    Piece pieces[kInBlock];
  };
  static Block* take();
  static void give_back(Block* first);
  void swap(Pieces& other) {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(size_, other.size_);
  }

  Block* first_ = nullptr;
  Block* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace simgpu::cupti
