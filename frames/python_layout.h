// Where CPython keeps what a stack needs: a thread's innermost frame, a frame's caller, code and instruction, a code
// object's names and lines. By minor version, 3.8 … 3.13: within one these do not move (its ABI). Every number was taken
// from that version's headers; tests/e2e/records/test_python_lines.py holds each against the interpreter's own frames.
// Numbers alone: who reads by them, and how, is interpose/python for the thread's own frames, writer/sample for another
// process's.
#pragma once

#include "base/types.h"
#include "frames/line_table.h"

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
  // Not of the ABI: who follows them proves them first.
  u16 runtime_interpreter;  // _PyRuntime: the main interpreter
  u16 interpreter_threads;  // PyInterpreterState: the newest of its threads
};
inline constexpr u8 kNoPointer = 255, kNoOwner = 255;
inline constexpr u8 kOwnedByGenerator = 1,
                    kOwnedByC = 3;           // an entry frame of the interpreter's own: no function of the program's
inline constexpr u32 kNextThreadOffset = 8;  // PyThreadState: the one made before it
inline constexpr u32 kTypeOffset = 8;        // PyObject: its type
inline constexpr u32 kTypeNameOffset = 24;   // PyTypeObject: tp_name
inline constexpr u32 kSizeOffset = 16;       // PyVarObject: how many items; str: how many characters
inline constexpr u32 kStrStateOffset = 32;
inline constexpr u32 kBytesTextOffset = 32;

// nullptr: not in the table.
const PythonLayout* layout_of(u32 minor);
// "3.11.2 (main, …" → 11. False: it says nothing of the kind.
bool read_python_version(const char* text, u32& minor);

}  // namespace gputrace
