#pragma once

#include <cuda.h>

// The parts of drv_every that are not calls of today's driver interface.

inline CUDA_MEMCPY2D rows_to_array(const void* host, CUarray array) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = 64;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 64;
  copy.Height = 8;
  return copy;
}

inline CUDA_MEMCPY3D rows_to_rows(CUdeviceptr from, CUdeviceptr to) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.srcPitch = 64;
  copy.srcHeight = 8;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.dstPitch = 64;
  copy.dstHeight = 8;
  copy.WidthInBytes = 32;
  copy.Height = 8;
  copy.Depth = 2;
  return copy;
}

struct OldCounts {
  int calls;
  int failures;
};

// Entries that today's cuda.h renames: their older versions, by their exported names.
OldCounts old_versions();
