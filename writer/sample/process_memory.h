// Another process's memory, read as it lies there: the process is not stopped, signalled or told. What is read may have changed
// a moment later, and nothing need be what it is taken for. Where the kernel refuses, `gputrace run` is asked to read it, if there is one.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "writer/sample/memory_of_run.h"

namespace gputrace {

class ProcessMemory {
 public:
  // `run` may be nullptr; outlives this.
  explicit ProcessMemory(i32 process, MemoryOfRun* run = nullptr) : process_(process), run_(run) {}

  // False: nothing lies there, or the kernel refuses. Whole pages are taken and kept until look_anew(): what lies together is of
  // nearly one instant.
  bool read(u64 address, void* out, u64 size) { return read(address, out, size, true); }
  // The same of what is not likely to be read again at the next look.
  bool read_once(u64 address, void* out, u64 size) { return read(address, out, size, false); }
  // Forgets what was read. `whose`: what is looked at next, a thread say; pages that read() took at the look at it before are likely to
  // be wanted again, and are taken by one call of the kernel. 0: nothing in particular.
  void look_anew(u64 whose);

  // Takes the pages of those addresses by one call of the kernel for some sixty of them, for what is read next: as many as there is room
  // for. One that is no longer there leaves those to be read as they are asked for.
  void expect(const std::vector<u64>& addresses);

  // All pieces by one call of the kernel, none from a kept page. False: one of them could not be read.
  void add_piece(u64 address, void* out, u64 size);
  bool read_pieces();

  i32 process() const { return process_; }
  int error() const { return error_; }  // errno of the newest read that failed

 private:
  static constexpr u64 kPage = 4096;
  static constexpr std::size_t kMostPages = 256;
  static constexpr std::size_t kMostAtOnce = 64;  // half of what `run` reads at once
  static constexpr std::size_t kMostRemembered = 4096;
  struct Page {
    u64 address;
    bool is_wanted;  // by read()
    u8 bytes[kPage];
  };
  bool read(u64 address, void* out, u64 size, bool again);
  const Page* page_at(u64 address, bool again);
  Page* free_page();
  void take_at_once(std::span<const u64> pages);
  bool read_directly(u64 address, void* out, u64 size);
  bool take(const iovec* here, const iovec* there, std::size_t count, u64 wanted);

  const i32 process_;
  MemoryOfRun* const run_;
  bool by_run_ = false;
  int error_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t used_ = 0;
  std::unordered_map<u64, std::size_t> place_of_;  // in pages_, by address
  std::vector<u64> expected_;                      // pages
  u64 whose_ = 0;
  std::unordered_map<u64, std::vector<u64>> wanted_before_;  // addresses of pages, by whose they are
  std::vector<iovec> here_, there_;
  u64 wanted_ = 0;
};

}  // namespace gputrace
