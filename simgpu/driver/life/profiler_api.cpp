// cuProfiler*, cuGetExportTable.
#include "simgpu/driver/life/call.h"

using namespace simgpu;

extern "C" {
CUresult CUDAAPI cuProfilerInitialize(const char* config, const char* output, int mode);
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
}

SIM_API(cuProfilerInitialize, "cuProfilerInitialize", (const char* config, const char* output, int mode),
        (config, output, mode)) {
  static_cast<void>(config);
  static_cast<void>(output);
  static_cast<void>(mode);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// They tell a profiler when to look; the work is the same.
SIM_API(cuProfilerStart, "cuProfilerStart", (), ()) {
  return call.context() == nullptr ? call.context_error() : CUDA_SUCCESS;
}

SIM_API(cuProfilerStop, "cuProfilerStop", (), ()) {
  return call.context() == nullptr ? call.context_error() : CUDA_SUCCESS;
}

// Undocumented tables of the vendor's libraries: there are none.
SIM_API_ALWAYS(cuGetExportTable, "cuGetExportTable", (const void** table, const CUuuid* id), (table, id)) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
