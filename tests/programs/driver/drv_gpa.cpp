// drv_gpa [api=v1|v2] [flags=0|1|2] [again=0|1] [count=N] [exit=E]: every entry through cuGetProcAddress, the first or
// the second one; flags=2 asks for per-thread default stream variants; again=1 asks cuGetProcAddress for itself first.
#include <dlfcn.h>

#include "tests/programs/drv_calls.h"

using GetV1 = CUresult (*)(const char*, void**, int, cuuint64_t);
using GetV2 = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

struct Finder {
  GetV1 v1 = nullptr;
  GetV2 v2 = nullptr;
  cuuint64_t flags = 0;

  void* find(const char* name, int version) const {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    MUST(v1 != nullptr ? v1(name, &found, version, flags) : v2(name, &found, version, flags, &status));
    return found;
  }
};

int main(int argc, char** argv) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 72;
  }
  Finder finder;
  finder.flags = static_cast<cuuint64_t>(option(argc, argv, "flags", 0));
  const bool first_version = std::strcmp(text_option(argc, argv, "api", "v2"), "v1") == 0;
  if (first_version) {
    finder.v1 = reinterpret_cast<GetV1>(dlsym(library, "cuGetProcAddress"));
  } else {
    finder.v2 = reinterpret_cast<GetV2>(dlsym(library, "cuGetProcAddress_v2"));
  }
  if (option(argc, argv, "again", 0) != 0) {
    void* self = finder.find("cuGetProcAddress", first_version ? 11030 : 12000);
    first_version ? finder.v1 = reinterpret_cast<GetV1>(self), 0 : (finder.v2 = reinterpret_cast<GetV2>(self), 0);
  }
  const int at_least = finder.flags == 2 ? 7000 : 0;  // the version in which most per-thread variants came
  Calls calls{};
#define GT_CALL(name, symbol, since) \
  calls.name##_ = reinterpret_cast<decltype(calls.name##_)>(finder.find(#name, since > at_least ? since : at_least));
#include "tests/programs/drv_calls.def"
#undef GT_CALL
  return run_rounds(calls, argc, argv);
}
