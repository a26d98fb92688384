// Shared by the programs that call vendor libraries: the driver's part, and the list of what was called, one JSON line
// each.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

inline void must(int result, const char* call, int line) {
  if (result == 0) return;
  std::fprintf(stderr, "line %d: %s: %d\n", line, call, result);
  std::exit(70);
}
#define MUST(call) must(static_cast<int>(call), #call, __LINE__)

inline CUstream begin_program() {
  MUST(cuInit(0));
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}
inline int end_program(CUstream stream) {
  MUST(cuStreamSynchronize(stream));
  std::printf("done\n");
  return 3;  // an exit code of its own
}
