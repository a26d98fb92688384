// The interpreter of this process, as far as it can be read.
//
// Nothing here takes the GIL or allocates. Three functions of the interpreter's are called: PyGILState_GetThisThreadState
// and Py_IsFinalizing only read; Py_GetVersion, once, writes the same text anew into the interpreter's own buffer.
#pragma once

#include "base/types.h"
#include "frames/python_layout.h"

namespace gputrace {

// The interpreter of this process, as far as it can be read. Found once a session; constant afterwards.
struct PythonInterpreter {
  const PythonLayout* layout = nullptr;  // nullptr: not to be read, `why` says it
  u64 (*thread_state)() = nullptr;       // PyGILState_GetThisThreadState: needs no GIL
  int (*is_finalizing)() = nullptr;
  u64 runtime = 0;            // where its _PyRuntime lies; 0: it exports none
  u64 runtime_bytes = 0;      // of its _PyRuntime
  const char* why = nullptr;  // a sentence for people; nullptr: all is well, or there is no interpreter
  char version[32] = {};      // "3.11.2"; "": there is none
};
// Looks for it among the loaded objects. Cold; takes the loader's lock for the time of a few walks.
void find_interpreter(PythonInterpreter& interpreter);

// Walks the calling thread's frames by reads that cannot fault and looks at every object on the way: code objects are of
// type "code", names of type "str", tables of type "bytes", lines are sensible, the chain ends.
enum class Proof { Holds, NothingToSee, Fails };
Proof prove(const PythonLayout& layout, u64 thread_state);

}  // namespace gputrace
