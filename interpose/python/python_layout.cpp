#include "interpose/python/python_layout.h"

#include <pthread.h>

#include <cstring>

#include "base/safe_read.h"
#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

// 3.8 and 3.9: frames are objects, instructions are counted in bytes.
constexpr PythonLayout kFrameObjects = {.lines = LineTableKind::Increments,
                                        .thread_id = 176,
                                        .thread_frame = 24,
                                        .block_frame = kNoPointer,
                                        .caller = 24,
                                        .code = 32,
                                        .instruction = 104,
                                        .owner = kNoOwner,
                                        .instruction_is_address = false,
                                        .instruction_unit = 1,
                                        .code_first_line = 40,
                                        .code_file = 104,
                                        .code_name = 112,
                                        .code_lines = 120,
                                        .code_bytes = 0,
                                        .code_traceable = 0,
                                        .ascii_text = 48,
                                        .other_text = 72};
// 3.10 counts them in units of two, and its line tables are ranges.
constexpr PythonLayout frame_objects_with_ranges() {
  PythonLayout layout = kFrameObjects;
  layout.lines = LineTableKind::Ranges;
  layout.instruction = 96;
  layout.instruction_unit = 2;
  return layout;
}
constexpr PythonLayout kFrameObjectsWithRanges = frame_objects_with_ranges();
// 3.11: frames lie on a stack of the interpreter's, a block of C's points to the innermost.
constexpr PythonLayout kInterpreterFrames = {.lines = LineTableKind::Locations,
                                             .thread_id = 152,
                                             .thread_frame = 56,
                                             .block_frame = 8,
                                             .caller = 48,
                                             .code = 32,
                                             .instruction = 56,
                                             .owner = 69,
                                             .instruction_is_address = true,
                                             .instruction_unit = 1,
                                             .code_first_line = 72,
                                             .code_file = 112,
                                             .code_name = 128,
                                             .code_lines = 136,
                                             .code_bytes = 184,
                                             .code_traceable = 168,
                                             .ascii_text = 48,
                                             .other_text = 72};
// 3.12: strings lose their second form, frames are ordered anew.
constexpr PythonLayout kSmallerFrames = {.lines = LineTableKind::Locations,
                                         .thread_id = 136,
                                         .thread_frame = 56,
                                         .block_frame = 0,
                                         .caller = 8,
                                         .code = 0,
                                         .instruction = 56,
                                         .owner = 70,
                                         .instruction_is_address = true,
                                         .instruction_unit = 1,
                                         .code_first_line = 68,
                                         .code_file = 112,
                                         .code_name = 128,
                                         .code_lines = 136,
                                         .code_bytes = 192,
                                         .code_traceable = 176,
                                         .ascii_text = 40,
                                         .other_text = 56};
// 3.13: the thread itself points to its innermost frame.
constexpr PythonLayout frames_by_thread() {
  PythonLayout layout = kSmallerFrames;
  layout.thread_id = 152;
  layout.thread_frame = 72;
  layout.block_frame = kNoPointer;
  layout.code_bytes = 200;
  layout.code_traceable = 184;
  return layout;
}
constexpr PythonLayout kFramesByThread = frames_by_thread();

constexpr u32 kMostFrames = 64;  // a chain that is longer may go on: what was seen of it was right
constexpr u32 kLargestFirstLine = 1u << 28;

template <typename Function>
Function function_beside(const void* object, const char* name) {
  return reinterpret_cast<Function>(find_function_beside(object, name));
}

bool type_is(u64 object, const char* name) {
  u64 type = 0, at = 0;
  char text[8] = {};
  return read_safely(object + kTypeOffset, type) && read_safely(type + kTypeNameOffset, at) &&
         read_safely(at, text, std::strlen(name) + 1) && std::strcmp(text, name) == 0;
}

bool code_is_sound(const PythonLayout& layout, u64 code) {
  u64 name = 0, file = 0, lines = 0;
  i32 first = 0;
  return type_is(code, "code") && read_safely(code + layout.code_name, name) && type_is(name, "str") &&
         read_safely(code + layout.code_file, file) && type_is(file, "str") &&
         read_safely(code + layout.code_lines, lines) && type_is(lines, "bytes") &&
         read_safely(code + layout.code_first_line, first) && first >= 0 && static_cast<u32>(first) < kLargestFirstLine;
}

// "3.11.2 (main, …" or "3.13.0 experimental free-threading build (…".
bool read_version(const char* text, PythonInterpreter& interpreter, u32& minor) {
  if (std::strncmp(text, "3.", 2) != 0) return false;
  minor = 0;
  for (const char* at = text + 2; *at >= '0' && *at <= '9' && minor < 1000; ++at)
    minor = minor * 10 + static_cast<u32>(*at - '0');
  u64 length = 0;
  while (text[length] && text[length] != ' ' && length + 1 < sizeof interpreter.version) ++length;
  std::memcpy(interpreter.version, text, length);
  return true;
}

}  // namespace

const PythonLayout* layout_of(u32 minor) {
  switch (minor) {
    case 8:
    case 9:
      return &kFrameObjects;
    case 10:
      return &kFrameObjectsWithRanges;
    case 11:
      return &kInterpreterFrames;
    case 12:
      return &kSmallerFrames;
    case 13:
      return &kFramesByThread;
    default:
      return nullptr;
  }
}

void find_interpreter(PythonInterpreter& interpreter) {
  interpreter = {};
  void* found = find_function(ObjectRole::Other, "PyGILState_GetThisThreadState");
  if (!found) return;
  const auto get_version = function_beside<const char* (*)()>(found, "Py_GetVersion");
  const char* version = get_version ? get_version() : nullptr;
  u32 minor = 0;
  if (!version || !read_version(version, interpreter, minor)) {
    interpreter.why = "the interpreter does not say its version";
    return;
  }
  interpreter.is_finalizing = function_beside<int (*)()>(found, minor >= 13 ? "Py_IsFinalizing" : "_Py_IsFinalizing");
  if (std::strstr(version, "free-threading")) {
    interpreter.why = "a free-threaded build keeps its frames otherwise";
  } else if (!layout_of(minor)) {
    interpreter.why = "only CPython 3.8 to 3.13 is known";
  } else if (!interpreter.is_finalizing) {
    interpreter.why = "the interpreter does not say when it ends";
  } else {
    interpreter.layout = layout_of(minor);
    interpreter.thread_state = reinterpret_cast<u64 (*)()>(found);
  }
}

Proof prove(const PythonLayout& layout, u64 thread_state) {
  u64 thread = 0, frame = 0;
  if (!read_safely(thread_state + layout.thread_id, thread) || thread != static_cast<u64>(pthread_self()))
    return Proof::Fails;
  if (!read_safely(thread_state + layout.thread_frame, frame)) return Proof::Fails;
  if (layout.block_frame != kNoPointer && !read_safely(frame + layout.block_frame, frame)) return Proof::Fails;
  if (!frame) return Proof::NothingToSee;
  u32 seen = 0;
  for (u32 i = 0; frame && i < kMostFrames; ++i) {
    u8 owner = 0;
    u64 code = 0, caller = 0;
    if (layout.owner != kNoOwner && !read_safely(frame + layout.owner, owner)) return Proof::Fails;
    if (owner != kOwnedByC || layout.owner == kNoOwner) {
      if (!read_safely(frame + layout.code, code) || !code_is_sound(layout, code)) return Proof::Fails;
      ++seen;
    }
    if (!read_safely(frame + layout.caller, caller) || caller == frame) return Proof::Fails;
    frame = caller;
  }
  return seen ? Proof::Holds : Proof::NothingToSee;
}

}  // namespace gputrace
