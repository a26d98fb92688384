#include "analysis/symbols/native_frames.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "analysis/symbols/object_symbols.h"

namespace gputrace {
namespace {

constexpr Nanos kMostTime = 2'000'000'000;
constexpr std::size_t kMostObjects = 256;
constexpr std::size_t kMostFileBytes = 255;  // each frame has a copy; of longer ones the end

Nanos processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<Nanos>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

bool begins_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool is_library_object(std::string_view path) {
  for (const std::string_view place : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/local/cuda"})
    if (begins_with(path, place)) return true;
  for (const std::string_view part : {"/site-packages/", "/dist-packages/"})
    if (path.find(part) != std::string_view::npos) return true;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view vendor :
       {"libcuda", "libcublas", "libcudnn", "libcufft", "libcupti", "libcurand", "libcusolver", "libcusparse",
        "libnccl", "libnv", "libgputrace", "libpython", "libtorch", "libc10"})
    if (begins_with(name, vendor)) return true;
  return false;
}

// What is linked into the program itself: the static CUDA runtime, the stubs that nvcc makes for kernels, what inlines nothing.
bool is_runtime_function(std::string_view name) {
  for (const std::string_view prefix : {"__cuda", "__device_stub_", "libcudart_static_", "cudart::", "std::"})
    if (begins_with(name, prefix)) return true;
  const auto upper = [&](std::size_t at) { return at < name.size() && name[at] >= 'A' && name[at] <= 'Z'; };
  return (begins_with(name, "cuda") && upper(4)) || (begins_with(name, "cu") && upper(2));
}

bool lies_in(const std::vector<std::string>& folders, std::string_view path) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    return begins_with(path, folder) && path.size() > folder.size() && path[folder.size()] == '/';
  });
}

std::string end_of(const std::string& path) {
  return path.size() <= kMostFileBytes ? path : path.substr(path.size() - kMostFileBytes);
}

std::string hex(u64 value) {
  char text[24];
  std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

void name_native_frames(SourceLines& lines, const std::vector<std::string>& packages) {
  if (lines.native.empty()) return;
  const Nanos last = processor_time() + kMostTime;
  std::map<u32, ObjectSymbols> objects;
  std::map<std::pair<u32, u64>, ObjectSymbols::Place> places;
  for (const NativeLine& native : lines.native) {
    SourceFrame& frame = lines.frames[native.frame];
    const NativeObject& object = lines.objects[native.object];
    frame.file = end_of(object.path);
    frame.function = hex(native.offset);
    frame.native = true;
    frame.library = is_library_object(object.path) || lies_in(packages, object.path);
    if (processor_time() > last || (objects.size() == kMostObjects && objects.find(native.object) == objects.end())) {
      ++lines.unnamed;
      continue;
    }
    const auto [at, fresh] = places.try_emplace({native.object, native.offset});
    if (fresh)
      at->second = objects.try_emplace(native.object, object.path, object.build_id).first->second.at(native.offset);
    const ObjectSymbols::Place& place = at->second;
    if (!place.function.empty()) {
      frame.function = place.function;
      frame.library = frame.library || place.others || is_runtime_function(place.function);
    }
    if (!place.file.empty()) frame.file = end_of(place.file), frame.line = place.line;
    lines.unnamed += place.function.empty();
  }
}

}  // namespace gputrace
