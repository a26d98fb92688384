// Python processes that have an interpreter of their own: workers by multiprocessing's "spawn" and "forkserver", by loky and by Ray. The
// traced process says where its interpreter keeps what it knows (`_PyRuntime`); in another process that runs the same file it lies as far
// behind that file's first page.
#pragma once

#include <string>
#include <vector>

#include "frames/python_layout.h"
#include "writer/sample/process_memory.h"

namespace gputrace {

// A thread of an interpreter: its PyThreadState, and what stands there as its pthread_self(). state 0: none was found.
struct PythonThread {
  u64 state = 0, id = 0;
};

class OwnInterpreter {
 public:
  explicit OwnInterpreter(const PythonLayout& layout) : layout_(layout) {}

  // Whether the way from `runtime` leads to `thread`, which is known to be one of the traced process's: else the layout is another
  // one, and first_thread() is not to be asked.
  bool prove(ProcessMemory& traced, u64 runtime, u64 thread);
  // The thread that a process began with. None: it runs no such interpreter, or not yet.
  PythonThread first_thread(ProcessMemory& process) const;
  // The threads that the interpreter whose _PyRuntime that is lists, the newest first: `most` at most. None: the way breaks off.
  std::vector<PythonThread> threads(ProcessMemory& process, u64 runtime, std::size_t most) const;

 private:
  template <typename Visit>
  bool visit_threads(ProcessMemory& process, u64 runtime, Visit&& visit) const;

  const PythonLayout& layout_;
  std::string file_;  // device and inode, as /proc/PID/maps writes them
  u64 offset_ = 0;    // of the runtime from that file's first page
};

// Whether multiprocessing, loky (joblib's, scikit-learn's) or Ray (which names its workers by what they run) started the process anew, or
// multiprocessing's fork server forked it, by command lines; not the fork server itself.
bool is_worker_begun_anew(i32 process, i32 parent);
// Whether it has a ring of its own: it calls CUDA, and is a traced process like the one that started it.
bool has_own_ring(i32 process);

}  // namespace gputrace
