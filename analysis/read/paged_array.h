// A large array that takes memory only where it was written, in huge pages where the kernel has them: a window of
// millions of entries costs few page faults and few misses of the TLB. Not grown; what it holds at first is anything, unless it
// was made with Fresh::Zeroed.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "analysis/read/kept_pages.h"

namespace gputrace {

enum class Fresh { Anything, Zeroed };

template <typename T>
class PagedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  PagedArray() = default;
  // std::bad_alloc where the kernel gives no memory.
  explicit PagedArray(std::size_t size, Fresh fresh = Fresh::Anything)
      : data_(static_cast<T*>(take_pages(size * sizeof(T), fresh == Fresh::Zeroed))), bytes_(size * sizeof(T)) {}
  ~PagedArray() { give_pages(data_, bytes_); }
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
