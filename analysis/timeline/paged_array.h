// A large array that takes memory only where it was written, in huge pages where the kernel has them: a window of
// millions of entries costs few page faults and few misses of the TLB. Not grown; its bytes are 0 until they are
// written.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace gputrace {

template <typename T>
class PagedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  PagedArray() = default;
  explicit PagedArray(std::size_t size) : bytes_(size * sizeof(T)) {
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    ::madvise(at, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<T*>(at);
  }
  ~PagedArray() {
    if (data_) ::munmap(data_, bytes_);
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
  T* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gputrace
