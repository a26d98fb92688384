// Entries one after the other, each written where it lies: a vector fills what it appends first, and looks up both of its ends to
// tell how many there are. Large ones are not copied to grow.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace gputrace {

template <typename T>
class Appended {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // The next one, of which all is to be set: anything may stand there. std::bad_alloc where there is no memory.
  T& append() {
    if (size_ == room_) [[unlikely]]
      grow();
    return entries_.get()[size_++];
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  T* data() { return entries_.get(); }
  T& operator[](std::size_t at) { return entries_.get()[at]; }

 private:
  struct Free {
    void operator()(T* entries) const { std::free(entries); }
  };

  [[gnu::noinline]] void grow() {
    constexpr std::size_t kFirst = 256;
    const std::size_t room = room_ == 0 ? kFirst : 2 * room_;
    void* const larger = std::realloc(static_cast<void*>(entries_.get()), room * sizeof(T));
    if (!larger) throw std::bad_alloc();
    static_cast<void>(entries_.release());
    entries_.reset(static_cast<T*>(larger));
    room_ = room;
  }

  std::unique_ptr<T, Free> entries_;
  std::size_t size_ = 0, room_ = 0;
};

}  // namespace gputrace
