// A large array that takes memory only where it was written, in huge pages where the kernel has them: a window of
// millions of entries costs few page faults and few misses of the TLB. Not grown.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace gputrace {

// While one lives, memory of arrays that are gone is kept for the next ones of the same size: who loads one trace after the other touches it for
// the first time once, and a first touch costs more than what is read into it. Any thread; several may live.
class PagedMemory {
 public:
  PagedMemory() {
    std::lock_guard lock(kept().mutex);
    ++kept().users;
  }
  ~PagedMemory() {
    std::lock_guard lock(kept().mutex);
    if (--kept().users != 0) return;
    for (const Piece& piece : kept().pieces) ::munmap(piece.at, piece.bytes);
    kept().pieces.clear();
  }
  PagedMemory(const PagedMemory&) = delete;
  PagedMemory& operator=(const PagedMemory&) = delete;

  // Its bytes are 0 where `zero`, else what somebody left in them.
  static void* take(std::size_t bytes, bool zero) {
    if (void* const used = kept().take(bytes)) {
      if (zero) std::memset(used, 0, bytes);
      return used;
    }
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    ::madvise(at, bytes, MADV_HUGEPAGE);
    return at;
  }
  static void give_back(void* at, std::size_t bytes) {
    {
      std::lock_guard lock(kept().mutex);
      if (kept().users != 0) return kept().pieces.push_back({at, bytes});
    }
    ::munmap(at, bytes);
  }

 private:
  struct Piece {
    void* at;
    std::size_t bytes;
  };
  struct Kept {
    std::mutex mutex;
    unsigned users = 0;
    std::vector<Piece> pieces;

    void* take(std::size_t bytes) {
      std::lock_guard lock(mutex);
      for (Piece& piece : pieces) {
        if (piece.bytes != bytes) continue;
        void* const at = piece.at;
        piece = pieces.back();
        pieces.pop_back();
        return at;
      }
      return nullptr;
    }
  };
  static Kept& kept() {
    static Kept all;
    return all;
  }
};

template <typename T>
class PagedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  PagedArray() = default;
  // Its entries are anything until they are written.
  explicit PagedArray(std::size_t size) : PagedArray(size, false) {}
  // Its bytes are 0.
  static PagedArray of_zeros(std::size_t size) { return PagedArray(size, true); }
  ~PagedArray() {
    if (data_) PagedMemory::give_back(data_, bytes_);
  }
  PagedArray(PagedArray&& other) noexcept { swap(other); }
  PagedArray& operator=(PagedArray&& other) noexcept {
    PagedArray moved(std::move(other));
    swap(moved);
    return *this;
  }
  void swap(PagedArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  std::size_t size() const { return bytes_ / sizeof(T); }
  T* data() { return data_; }
  T& operator[](std::size_t at) { return data_[at]; }
  const T& operator[](std::size_t at) const { return data_[at]; }

 private:
  PagedArray(std::size_t size, bool zero)
      : data_(static_cast<T*>(PagedMemory::take(size * sizeof(T), zero))), bytes_(size * sizeof(T)) {}

  T* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gputrace
