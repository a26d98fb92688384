// drv_linked [count=N] [exit=E]: linked against libcuda.
#include "tests/programs/drv_calls.h"

int main(int argc, char** argv) {
  const Calls calls = linked_calls();
  return run_rounds(calls, argc, argv);
}
