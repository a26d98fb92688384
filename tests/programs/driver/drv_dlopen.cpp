// drv_dlopen [mode=local|global|deepbind] [path=FILE] [count=N] [exit=E]: dlopen and dlsym of the exported names.
#include <dlfcn.h>

#include "tests/programs/driver/dlopen_mode.h"
#include "tests/programs/drv_calls.h"

int main(int argc, char** argv) {
  void* library = dlopen(text_option(argc, argv, "path", "libcuda.so.1"), dlopen_mode(argc, argv));
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 72;
  }
  Calls calls{};
#define GT_CALL(name, symbol, since) calls.name##_ = reinterpret_cast<decltype(calls.name##_)>(dlsym(library, #symbol));
#include "tests/programs/drv_calls.def"
#undef GT_CALL
  return run_rounds(calls, argc, argv);
}
