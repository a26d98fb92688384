#include "cupti/library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstring>

#include "base/c_text.h"
#include "base/raw_syscall.h"
#include "cupti/places.h"

namespace gputrace {
namespace {

constexpr u32 kMostLoaded = 512;
constexpr u32 kMostCandidates = 32;

// Copies of the loaded objects' paths: another thread may close what the loader's own strings belong to. One search at
// a time.
struct Loaded {
  const char* paths[kMostLoaded];
  char texts[kMostLoaded * 128];
  u32 count;
  u32 used;
};
int note_loaded(dl_phdr_info* info, std::size_t, void* data) {
  Loaded& loaded = *static_cast<Loaded*>(data);
  const char* path = info->dlpi_name;
  const u64 size = path ? std::strlen(path) + 1 : 0;
  if (size < 2 || loaded.count == kMostLoaded || loaded.used + size > sizeof loaded.texts) return 0;
  char* copy = loaded.texts + loaded.used;
  std::memcpy(copy, path, size);
  loaded.used += static_cast<u32>(size);
  loaded.paths[loaded.count++] = copy;
  return 0;
}
const Loaded& loaded_objects() {
  static constinit Loaded loaded{};
  loaded.count = loaded.used = 0;
  dl_iterate_phdr(note_loaded, &loaded);
  return loaded;
}

using Dlopen = void* (*)(const char*, int);
using Dlsym = void* (*)(void*, const char*);
using Dlerror = char* (*)();

struct Loader {
  Dlopen open;
  Dlsym symbol;
  Dlerror error;
  int (*close)(void*);
};

bool bind(const Loader& loader, void* handle, CuptiApi& api, const char*& missing) {
  missing = nullptr;
#define GT_CUPTI(name, parameters)                                               \
  api.name = reinterpret_cast<decltype(api.name)>(loader.symbol(handle, #name)); \
  if (!api.name && !missing) missing = #name;
  GT_CUPTI_REQUIRED(GT_CUPTI)
#undef GT_CUPTI
#define GT_CUPTI(name, parameters) api.name = reinterpret_cast<decltype(api.name)>(loader.symbol(handle, #name));
  GT_CUPTI_OPTIONAL(GT_CUPTI)
#undef GT_CUPTI
  if (loader.error) loader.error();  // an optional function that is absent is no error of the program's
  return !missing;
}

bool exists(const char* path) {
  return !std::strchr(path, '/') || raw_syscall(SYS_faccessat, -100 /* AT_FDCWD */, raw_pointer(path), R_OK) == 0;
}

enum class Try { Opened, Absent, Unusable };

Try try_candidate(const Loader& loader, const CuptiCandidate& candidate, CuptiApi& api, Sentence& said) {
  if (!candidate.loaded && !exists(candidate.path)) return Try::Absent;
  void* handle = loader.open(candidate.path, RTLD_NOW | RTLD_LOCAL | (candidate.loaded ? RTLD_NOLOAD : 0));
  if (!handle) {
    const char* error = loader.error ? loader.error() : nullptr;
    if (!std::strchr(candidate.path, '/')) return Try::Absent;
    said << candidate.path << " cannot be opened: " << (error ? error : "no reason given") << "; ";
    return Try::Unusable;
  }
  const char* missing;
  if (bind(loader, handle, api, missing)) return Try::Opened;
  said << candidate.path << " has no " << missing << "; ";
  loader.close(handle);
  return Try::Unusable;
}

}  // namespace

bool open_cupti(const DeviceOptions& options, const DeviceHost& host, CuptiApi& api, Sentence& said) {
  const Loader loader{reinterpret_cast<Dlopen>(host.libc_function("dlopen")),
                      reinterpret_cast<Dlsym>(host.libc_function("dlsym")),
                      reinterpret_cast<Dlerror>(host.libc_function("dlerror")),
                      reinterpret_cast<int (*)(void*)>(host.libc_function("dlclose"))};
  if (!loader.open || !loader.symbol || !loader.close) {
    said << "libc offers no dlopen";
    return false;
  }
  static constinit CuptiCandidate candidates[kMostCandidates]{};  // one start at a time
  u32 count = 1;
  if (options.library) {
    if (std::strlen(options.library) >= sizeof candidates[0].path) {
      said << "the path in GPUTRACE_CUPTI is too long";
      return false;
    }
    std::strcpy(candidates[0].path, options.library);
    candidates[0].reason = "GPUTRACE_CUPTI names it";
    candidates[0].loaded = false;
  } else {
    const Loaded& loaded = loaded_objects();
    CuptiSearch search;
    search.loaded = loaded.paths;
    search.loaded_count = loaded.count;
    search.driver_path = options.driver_path;
    search.runtime_path = options.runtime_path;
    search.cuda_home = host.variable("CUDA_HOME");
    search.newest_major = options.driver_version && options.driver_version < 13000 ? 12 : 13;
    count = list_candidates(search, candidates, kMostCandidates);
  }
  for (u32 i = 0; i < count; ++i) {
    const Try tried = try_candidate(loader, candidates[i], api, said);
    if (tried == Try::Opened) {
      said.clear();
      said << candidates[i].path << " (" << candidates[i].reason << ")";
      return true;
    }
    if (tried == Try::Unusable && candidates[i].loaded) return false;  // a second copy would not help
  }
  if (!said.size()) {
    said << "no libcupti was found";
    if (options.library) said << " at GPUTRACE_CUPTI=" << options.library;
  }
  return false;
}

const char* find_other_profiler(const DeviceHost& host, Sentence& name) {
  if (const char* injection = host.variable("CUDA_INJECTION64_PATH"); injection && *injection) {
    if (!std::strstr(file_name_of(injection), "libgputrace")) {
      name << "CUDA_INJECTION64_PATH=" << injection;
      return name.text();
    }
  }
  const Loaded& loaded = loaded_objects();
  for (u32 i = 0; i < loaded.count; ++i) {
    const char* file = file_name_of(loaded.paths[i]);
    // Nsight Systems, Nsight Compute.
    if (starts_with(file, "libToolsInjection") || starts_with(file, "libcuda-injection") ||
        starts_with(file, "libInterceptorInjectionTarget") || starts_with(file, "libnsys")) {
      name << loaded.paths[i];
      return name.text();
    }
  }
  return nullptr;
}

}  // namespace gputrace
