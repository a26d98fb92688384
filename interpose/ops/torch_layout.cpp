#include "interpose/ops/torch_layout.h"

#include <cstring>

#include "base/safe_read.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/settings/process_facts.h"

namespace gputrace {
namespace {

// With strings of eight bytes (packages until 2.6) and of 32; without (until 2.3) and with a table of keyword arguments before the
// forward thread's number.
constexpr TorchLayout layout_of(bool long_strings, bool keywords) {
  const u8 more = long_strings ? 24 : 0;
  return {.scope = 96,
          .name = 160,
          .is_schema = static_cast<u8>(168 + more),
          .sequence = static_cast<u8>(176 + more),
          .thread = 88,
          .forward_thread = static_cast<u16>((keywords ? 280 : 224) + more)};
}
constexpr TorchLayout kLayouts[2][2] = {{layout_of(false, false), layout_of(false, true)},
                                        {layout_of(true, false), layout_of(true, true)}};
constexpr u32 kFirstWithKeywords = 4;
constexpr u32 kFirstMinor = 1, kLastMinor = 15;  // of 2

// "__version__ = '2.15.0+cu132'" in the file that packages have beside their libraries.
bool read_version(const char* library, Torch& torch, u32& minor) {
  char path[1024], text[2048];
  const char* end = std::strstr(library, "/lib/libtorch_cpu.so");
  const u64 length = end ? static_cast<u64>(end - library) : 0;
  if (length == 0 || length + sizeof "/version.py" > sizeof path) return false;
  std::memcpy(path, library, length);
  std::memcpy(path + length, "/version.py", sizeof "/version.py");
  text[read_small_file(path, text, sizeof text - 1)] = 0;
  const char* at = std::strstr(text, "__version__ = '");
  if (!at) return false;
  at += std::strlen("__version__ = '");
  u64 size = 0;
  while ((at[size] == '.' || (at[size] >= '0' && at[size] <= '9')) && size + 1 < sizeof torch.version) ++size;
  std::memcpy(torch.version, at, size);
  if (std::strncmp(torch.version, "2.", 2) != 0) return false;
  minor = 0;
  for (const char* digit = torch.version + 2; *digit >= '0' && *digit <= '9' && minor < 1000; ++digit)
    minor = minor * 10 + static_cast<u32>(*digit - '0');
  return true;
}

}  // namespace

void find_torch(Torch& torch) {
  torch = {};
  void* const add = find_function(ObjectRole::Other, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
  if (!add) return;
  std::memcpy(torch.version, "?", 2);
  LoadedObject object;
  u32 minor = 0;
  void* const name = find_function_beside(add, "_ZNK2at14RecordFunction4nameEv");
  void* const thread = find_function_beside(add, "_ZN2at14RecordFunction15currentThreadIdEv");
  if (!find_object(add, object) || !object.path || !read_version(object.path, torch, minor)) {
    torch.why = "it does not say its version";
  } else if (minor < kFirstMinor || minor > kLastMinor || !name || !thread) {
    torch.why = "only PyTorch 2.1 to 2.15 is known";
  } else {
    const bool long_strings = find_function_beside(add, "_ZN2at11show_configB5cxx11Ev");
    torch.layout = &kLayouts[long_strings][minor >= kFirstWithKeywords];
    torch.add_callback = reinterpret_cast<u64 (*)(TorchCallback)>(add);
    torch.name_of = reinterpret_cast<const char* (*)(const void*)>(name);
    torch.thread_now = reinterpret_cast<u64 (*)()>(thread);
    torch.next_number = reinterpret_cast<u64 (*)()>(find_function_beside(add, "_ZN2at15sequence_number4peekEv"));
  }
}

bool proves(const Torch& torch, const void* function) {
  const u64 at = reinterpret_cast<u64>(function);
  u8 scope = 0, is_schema = 0;
  u64 name = 0, text = 0, thread = 0, forward_thread = 0;
  i64 sequence = 0;
  if (!read_safely(at + torch.layout->scope, scope) || !read_safely(at + torch.layout->is_schema, is_schema) ||
      !read_safely(at + torch.layout->sequence, sequence) || !read_safely(at + torch.layout->name, name) ||
      !read_safely(at + torch.layout->thread, thread) ||
      !read_safely(at + torch.layout->forward_thread, forward_thread))
    return false;
  if (scope >= 10 || is_schema > 1 || sequence < -1 || sequence >= i64{1} << 48) return false;
  if (thread != torch.thread_now() || forward_thread >= kMostThreads) return false;
  if (scope != kBackwardScope && forward_thread != 0) return false;
  // A schema begins with its name; a string with the address of its characters.
  if (is_schema) return read_safely(name, text) && text == reinterpret_cast<u64>(torch.name_of(function));
  return name == reinterpret_cast<u64>(torch.name_of(function));
}

}  // namespace gputrace
