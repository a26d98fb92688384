// Entries one after the other, each written where it lies: a vector fills what it appends first, and looks up both of its ends to
// tell how many there are. In blocks that stay when it is emptied: what grew in one piece was copied, and took memory twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace gputrace {

template <typename T>
class Appended {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // The next one, of which all is to be set: anything may stand there.
  T& append() {
    const std::size_t at = size_ % kBlock;
    if (at == 0) [[unlikely]]
      open_block();
    ++size_;
    return open_[at];
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  // Calls `visit(entry, further)` for each in order; `further`: the one that comes kAhead later, or the last of their block.
  template <std::size_t kAhead, typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t done = 0; done < size_; done += kBlock) {
      T* const first = blocks_[done / kBlock].get();
      T* const last = first + std::min(kBlock, size_ - done) - 1;
      for (T* each = first; each <= last; ++each)
        visit(*each, *(last - each > static_cast<std::ptrdiff_t>(kAhead) ? each + kAhead : last));
    }
  }

 private:
  static constexpr std::size_t kBlock = 4096;
  struct Free {
    void operator()(T* entries) const { std::allocator<T>().deallocate(entries, kBlock); }
  };
  using Block = std::unique_ptr<T[], Free>;  // not touched before it is used

  [[gnu::noinline]] void open_block() {
    const std::size_t block = size_ / kBlock;
    if (block == blocks_.size()) blocks_.push_back(Block(std::allocator<T>().allocate(kBlock)));
    open_ = blocks_[block].get();
  }

  std::vector<Block> blocks_;
  T* open_ = nullptr;  // the block that is written
  std::size_t size_ = 0;
};

}  // namespace gputrace
