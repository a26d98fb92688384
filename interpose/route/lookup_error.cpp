#include "interpose/route/lookup_error.h"

#include <errno.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

constexpr char kWhat[] = ": undefined symbol: ";
// Who asked last. Two threads that fail at once may read each other's name.
constinit std::atomic<const char*> asker{nullptr};

// The message with the asker's name in the place of ours; nullptr: it is about something else.
char* renamed(const char* message) {
  static constexpr unsigned kTexts = 8;  // a text is read before that many others were asked for
  static constinit char texts[kTexts][1024];
  static constinit std::atomic<unsigned> next{0};
  const char* name = asker.load(std::memory_order_acquire);
  const char* what = std::strstr(message, kWhat);
  LoadedObject self;
  if (!name || !what || !find_object(reinterpret_cast<const void*>(&renamed), self) || !self.path) return nullptr;
  const auto length = static_cast<std::size_t>(what - message);
  if (std::strlen(self.path) != length || std::memcmp(self.path, message, length) != 0) return nullptr;
  if (std::strlen(name) + std::strlen(what) >= sizeof texts[0]) return nullptr;
  char* text = texts[next.fetch_add(1, std::memory_order_relaxed) % kTexts];
  std::strcpy(text, name);
  std::strcat(text, what);
  return text;
}

}  // namespace

void not_found_for(const void* caller) {
  LoadedObject object;
  const bool library = find_object(caller, object) && object.path && object.path[0];
  asker.store(library ? object.path : program_invocation_name, std::memory_order_release);
}

}  // namespace gputrace

extern "C" __attribute__((visibility("default"))) char* dlerror() noexcept {
  using namespace gputrace;
  static constinit std::atomic<void*> known{nullptr};
  void* real = known.load(std::memory_order_relaxed);
  if (!real) {
    real = find_function_after_us("dlerror");
    known.store(real, std::memory_order_relaxed);
  }
  char* message = real ? reinterpret_cast<char* (*)()>(real)() : nullptr;
  if (!message || !asker.load(std::memory_order_relaxed)) return message;
  char* other = renamed(message);
  return other ? other : message;
}
