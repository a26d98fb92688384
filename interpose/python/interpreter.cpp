#include "interpose/python/interpreter.h"

#include <pthread.h>

#include <cstring>

#include "base/safe_read.h"
#include "frames/python_code.h"
#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

constexpr u32 kMostFrames = 64;  // a chain that is longer may go on: what was seen of it was right

template <typename Function>
Function function_beside(const void* object, const char* name) {
  return reinterpret_cast<Function>(find_function_beside(object, name));
}

// "3.11.2 (main, …" or "3.13.0 experimental free-threading build (…".
bool read_version(const char* text, PythonInterpreter& interpreter, u32& minor) {
  if (!read_python_version(text, minor)) return false;
  u64 length = 0;
  while (text[length] && text[length] != ' ' && length + 1 < sizeof interpreter.version) ++length;
  std::memcpy(interpreter.version, text, length);
  return true;
}

}  // namespace

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
    const elf::Variable runtime = find_variable_beside(found, "_PyRuntime");
    interpreter.runtime = runtime.address, interpreter.runtime_bytes = runtime.size;
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
      if (!read_safely(frame + layout.code, code) || !python_code_is_sound(layout, code, read_own)) return Proof::Fails;
      ++seen;
    }
    if (!read_safely(frame + layout.caller, caller) || caller == frame) return Proof::Fails;
    frame = caller;
  }
  return seen ? Proof::Holds : Proof::NothingToSee;
}

}  // namespace gputrace
