// Memory of large arrays. While a KeptPages exists, that of arrays which are gone is kept for the next ones of the same size: where
// one process is read after the other, the kernel need not clear as much again for each (on a virtual machine whose host takes
// free memory back, up to a quarter of an export's time).
//   · Any thread.
//   · Of each size at most as much is kept as arrays of that size held at once; it goes back to the kernel with the last KeptPages.
#pragma once

#include <cstddef>

namespace gputrace {

class KeptPages {
 public:
  KeptPages();
  ~KeptPages();
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;
};

// `bytes` of memory; taken from the kernel where they are written, in huge pages where it has them. 0 bytes: nullptr. std::bad_alloc
// where there is none. Zeroed where that is asked for, else anything may stand there.
void* take_pages(std::size_t bytes, bool zeroed);
// What take_pages() gave, of the same size.
void give_pages(void* at, std::size_t bytes) noexcept;

}  // namespace gputrace
