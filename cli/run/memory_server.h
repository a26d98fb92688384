// Reads memory of the processes that come from this one, for the sidecars of the run, where the kernel lets only an ancestor do
// so (base/memory_desks.h). One thread, which sleeps until somebody asks. It stops no process, and writes into none.
#pragma once

#include <string>
#include <thread>

#include "base/fd.h"
#include "base/memory_desks.h"

namespace gputrace {

class MemoryServer {
 public:
  MemoryServer();
  ~MemoryServer();
  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;

  // For GPUTRACE_RUN_MEMORY; empty: nothing is served.
  const std::string& path() const { return path_; }

 private:
  void serve();
  void answer(MemoryDesk& desk, DeskPaper& paper);
  i64 read_for(const MemoryDesk& desk, DeskPaper& paper);
  bool comes_from_here(i32 process);

  struct Known {
    i32 process = 0;
    i64 until = 0;  // CLOCK_MONOTONIC, ns
  };

  Fd file_;
  std::string path_;
  MemoryDesks* desks_ = nullptr;
  std::atomic<bool> over_{false};
  std::thread thread_;
  Known known_[64];  // processes that come from here, looked up a moment ago
  u32 next_known_ = 0;
};

}  // namespace gputrace
