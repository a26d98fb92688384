// Memory of the traced process and of those that come from it, read by `gputrace run` for the sidecar: where the kernel lets only
// an ancestor of a process read it (base/memory_desks.h). One thread.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory_desks.h"
#include "writer/host.h"

namespace gputrace {

class MemoryOfRun {
 public:
  // nullptr: the program was not started by `run`, or it is not to be seen from here, or counts its processes otherwise.
  static std::unique_ptr<MemoryOfRun> open(const Environment& environment);
  ~MemoryOfRun();
  MemoryOfRun(const MemoryOfRun&) = delete;
  MemoryOfRun& operator=(const MemoryOfRun&) = delete;

  // As process_vm_readv(), piece by piece of the same sizes here and there: bytes; -1 and errno. What has been read is copied
  // only where all of it could be.
  //   ETIMEDOUT  `run` has not answered yet: later perhaps
  //   EPERM      the kernel refuses `run` too, or it is gone, or all desks are taken
  ssize_t read(i32 process, const iovec* here, const iovec* there, std::size_t count);

  Nanos cpu() const { return cpu_; }  // that `run` has used for it

 private:
  MemoryOfRun(MemoryDesks* desks, i32 run) : desks_(desks), run_(run) {}
  bool take_desk();
  bool wait_for_answer(Nanos length);
  bool is_free();

  MemoryDesks* const desks_;
  const i32 run_;
  MemoryDesk* desk_ = nullptr;
  bool over_ = false;
  Nanos cpu_ = 0;
};

}  // namespace gputrace
