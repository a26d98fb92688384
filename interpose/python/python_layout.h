// Where CPython keeps what a stack needs: a thread's innermost frame, a frame's caller, code and instruction, a code
// object's names and lines. By minor version, 3.8 … 3.13: within one these do not move (its ABI). Every number was taken
// from that version's headers; tests/e2e/records/test_python_lines.py holds each against the interpreter's own frames.
//
// Nothing here takes the GIL or allocates. Three functions of the interpreter's are called: PyGILState_GetThisThreadState
// and Py_IsFinalizing only read; Py_GetVersion, once, writes the same text anew into the interpreter's own buffer.
#pragma once

#include "base/types.h"
#include "interpose/python/line_table.h"

namespace gputrace {

struct PythonLayout {
  LineTableKind lines;
  u8 thread_id;                         // PyThreadState: pthread_self() of its thread, eight bytes
  u8 thread_frame;                      // PyThreadState: the innermost frame, or a block that points to it
  u8 block_frame;                       // in that block; kNoPointer: there is none
  u8 caller, code, instruction, owner;  // of a frame; owner kNoOwner: frames are objects
  bool instruction_is_address;          // else an index
  u8 instruction_unit;                  // bytes that an index counts
  u8 code_first_line, code_file, code_name,
      code_lines;             // of a code object; code_name is the qualified one where there is one
  u8 code_bytes;              // its first instruction, where instructions are addresses
  u8 code_traceable;          // from which instruction on a frame counts as entered; 0: always
  u8 ascii_text, other_text;  // where the characters of a str begin
};
inline constexpr u8 kNoPointer = 255, kNoOwner = 255;
inline constexpr u8 kOwnedByGenerator = 1,
                    kOwnedByC = 3;          // an entry frame of the interpreter's own: no function of the program's
inline constexpr u32 kTypeOffset = 8;       // PyObject: its type
inline constexpr u32 kTypeNameOffset = 24;  // PyTypeObject: tp_name
inline constexpr u32 kSizeOffset = 16;      // PyVarObject: how many items; str: how many characters
inline constexpr u32 kStrStateOffset = 32;
inline constexpr u32 kBytesTextOffset = 32;

// nullptr: not in the table.
const PythonLayout* layout_of(u32 minor);

// The interpreter of this process, as far as it can be read. Found once a session; constant afterwards.
struct PythonInterpreter {
  const PythonLayout* layout = nullptr;  // nullptr: not to be read, `why` says it
  u64 (*thread_state)() = nullptr;       // PyGILState_GetThisThreadState: needs no GIL
  int (*is_finalizing)() = nullptr;
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
