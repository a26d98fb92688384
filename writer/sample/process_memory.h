// Another process's memory, read as it lies there: the process is not stopped, signalled or told. What is read may have changed
// a moment later, and nothing need be what it is taken for.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <vector>

#include "base/types.h"

namespace gputrace {

class ProcessMemory {
 public:
  explicit ProcessMemory(i32 process) : process_(process) {}

  // False: nothing lies there, or the kernel refuses. Whole pages are taken and kept until forget(): what lies together is of
  // nearly one instant.
  bool read(u64 address, void* out, u64 size);
  void forget() { used_ = 0; }

  // All pieces by one call of the kernel, none from a kept page. False: one of them could not be read.
  void add_piece(u64 address, void* out, u64 size);
  bool read_pieces();

  i32 process() const { return process_; }
  int error() const { return error_; }  // errno of the newest read that failed

 private:
  static constexpr u64 kPage = 4096;
  static constexpr std::size_t kMostPages = 64;
  struct Page {
    u64 address;
    u8 bytes[kPage];
  };
  const Page* page_at(u64 address);
  bool read_directly(u64 address, void* out, u64 size);

  const i32 process_;
  int error_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t used_ = 0;
  std::vector<iovec> here_, there_;
  u64 wanted_ = 0;
};

}  // namespace gputrace
