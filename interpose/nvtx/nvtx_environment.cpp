// NVTX_INJECTION64_PATH, by which the objects of the program find us: set before they look.
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/mapped_memory.h"
#include "base/raw_syscall.h"
#include "base/sentence.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/nvtx/nvtx.h"

extern "C" {
__attribute__((visibility("hidden"))) void* gputrace_real_getenv = nullptr;  // for the assembler
extern __attribute__((visibility("hidden"))) void* gputrace_relocated;       // route_x86_64.S
}

namespace gputrace {
namespace {

constexpr char kVariable[] = "NVTX_INJECTION64_PATH";

enum class Route : u32 { NotLooked, Ours, Foreign, Off, NoPath };
constinit std::atomic<u32> route{0};
constinit char own_setting[sizeof kVariable + 1024]{};  // NVTX_INJECTION64_PATH=PATH
constexpr u32 kVariables = 1024;
constinit char* own_environment[kVariables + 2]{};

const char* variable_now(const char* name, u64 length) {
  for (char* const* entry = environ; entry && *entry; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

// The absolute path of this library after "NVTX_INJECTION64_PATH=".
bool write_own_setting() {
  LoadedObject self;
  if (!find_object(&own_setting, self) || !self.path || !self.path[0]) return false;
  std::memcpy(own_setting, kVariable, sizeof kVariable - 1);
  char* at = own_setting + sizeof kVariable - 1;
  *at++ = '=';
  char* const end = own_setting + sizeof own_setting;
  if (self.path[0] != '/') {
    const long size = raw_syscall(SYS_getcwd, raw_pointer(at), end - at - 1);
    if (size <= 1) return false;
    at += size - 1;
    *at++ = '/';
  }
  const u64 length = std::strlen(self.path);
  if (length >= static_cast<u64>(end - at)) return false;
  std::memcpy(at, self.path, length + 1);
  return true;
}

// A longer list of the same variables in the place of the old one: setenv would allocate.
bool append_own_setting() {
  u32 count = 0;
  while (environ[count]) ++count;
  char** list = own_environment;
  if (count > kVariables) {
    list = map_memory<char*>((count + 2) * sizeof(char*));
    if (!list) return false;
  }
  std::memcpy(list, environ, count * sizeof(char*));
  list[count] = own_setting;
  environ = list;
  return true;
}

Route prepare() {
  copy_environment();
  const char* enabled = copied_variable("GPUTRACE");
  if ((enabled && std::strcmp(enabled, "0") == 0) || !nvtx_is_collected()) return Route::Off;
  if (!is_first_copy()) return Route::Off;
  if (!write_own_setting()) return Route::NoPath;
  const char* present = variable_now(kVariable, sizeof kVariable - 1);
  // A parent under us has set it.
  if (present) return std::strcmp(present, own_setting + sizeof kVariable) == 0 ? Route::Ours : Route::Foreign;
  return append_own_setting() ? Route::Ours : Route::NoPath;
}

}  // namespace

void nvtx_prepare_environment() {
  u32 not_looked = 0;
  if (route.load(std::memory_order_relaxed) || !environ) return;
  // One thread: before or in the constructor.
  route.compare_exchange_strong(not_looked, static_cast<u32>(prepare()), std::memory_order_relaxed);
}

bool nvtx_is_ours() { return static_cast<Route>(route.load(std::memory_order_relaxed)) == Route::Ours; }

void describe_nvtx(InfoText& info, const Options& options) {
  if (!options.collect_nvtx) return info.add("not_collected", "nvtx: left out by GPUTRACE_COLLECT");
  switch (static_cast<Route>(route.load(std::memory_order_relaxed))) {
    case Route::Foreign: {
      Sentence text;
      const char* other = variable_now(kVariable, sizeof kVariable - 1);
      text << "nvtx: " << kVariable << " names another library, which gets the events: " << (other ? other : "");
      return info.add("not_collected", text.text());
    }
    case Route::NoPath:
      return info.add("not_collected", "nvtx: the path of the library could not be told to the program");
    case Route::NotLooked:
    case Route::Off:
    case Route::Ours:
      return;
  }
}

}  // namespace gputrace

using namespace gputrace;

static char* no_getenv(const char*) { return nullptr; }

// The slow way into getenv (route_x86_64.S): the first time, and for names that begin like ours.
extern "C" __attribute__((visibility("hidden"))) void gputrace_before_getenv(const char* name) {
  if (__atomic_load_n(&gputrace_relocated, __ATOMIC_RELAXED) != &gputrace_relocated) return;
  ErrnoGuard guard;
  if (!__atomic_load_n(&gputrace_real_getenv, __ATOMIC_ACQUIRE)) {
    void* real = find_function_after_us("getenv");
    __atomic_store_n(&gputrace_real_getenv, real ? real : reinterpret_cast<void*>(&no_getenv), __ATOMIC_RELEASE);
  }
  if (name && std::strcmp(name, kVariable) == 0) nvtx_prepare_environment();
}
