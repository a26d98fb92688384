// Loaded by drv_plugin; linked against libcuda.
#include "tests/programs/drv_calls.h"

extern "C" int run_plugin(int argc, char** argv) {
  const Calls calls = linked_calls();
  return run_rounds(calls, argc, argv);
}
