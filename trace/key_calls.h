// The table of key_calls.def as data: the same numbers for who asks CUPTI for these calls and for who reads their records.
#pragma once

#include "base/types.h"

namespace gputrace {

// What a call gives to a device.
enum class KeyWork : u8 { Nothing, Kernel, Graph, Copy, Memset };

struct KeyCall {
  u32 callback;  // CUPTI's number
  KeyWork work;
  const char* name;  // CUPTI's
};
inline constexpr KeyCall kKeyCalls[] = {
#define GT_KEY_CALL(number, name, work) {number, KeyWork::work, #name},
#include "trace/key_calls.def"
};

// kCallback_cuLaunchKernel …
enum KeyCallback : u32 {
#define GT_KEY_CALL(number, name, work) kCallback_##name = number,
#include "trace/key_calls.def"
};

}  // namespace gputrace
