#include "frames/python_layout.h"

#include <cstring>

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
                                        .other_text = 72,
                                        .runtime_interpreter = 40,
                                        .interpreter_threads = 8};
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
                                             .other_text = 72,
                                             .runtime_interpreter = 48,
                                             .interpreter_threads = 16};
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
                                         .other_text = 56,
                                         .runtime_interpreter = 48,
                                         .interpreter_threads = 72};
// 3.13: the thread itself points to its innermost frame.
constexpr PythonLayout frames_by_thread() {
  PythonLayout layout = kSmallerFrames;
  layout.thread_id = 152;
  layout.thread_frame = 72;
  layout.block_frame = kNoPointer;
  layout.code_bytes = 200;
  layout.code_traceable = 184;
  layout.runtime_interpreter = 640;
  layout.interpreter_threads = 7344;
  return layout;
}
constexpr PythonLayout kFramesByThread = frames_by_thread();

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

bool read_python_version(const char* text, u32& minor) {
  if (std::strncmp(text, "3.", 2) != 0) return false;
  minor = 0;
  for (const char* at = text + 2; *at >= '0' && *at <= '9' && minor < 1000; ++at)
    minor = minor * 10 + static_cast<u32>(*at - '0');
  return true;
}

}  // namespace gputrace
