// drv_plugin plugin=FILE [mode=local|global|deepbind] [count=N] [exit=E]: the work is in a plugin, loaded at run time:
// plugin_driver.so (linked against libcuda) or plugin_runtime.so (carries libcudart_sim.a).
#include <cstdio>

#include "tests/programs/driver/dlopen_mode.h"

int main(int argc, char** argv) {
  void* plugin = dlopen(text_option(argc, argv, "plugin", "plugin_driver.so"), dlopen_mode(argc, argv));
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 72;
  }
  auto* const run = reinterpret_cast<int (*)(int, char**)>(dlsym(plugin, "run_plugin"));
  const int code = run(argc, argv);
  dlclose(plugin);
  return code;
}
