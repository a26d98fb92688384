// Which CUPTI we are: the answer of cuptiGetVersion and the size of each record, by SIMGPU_CUPTI=layout=….
//
// Records of one kind grow at their end only, so a record of an older CUPTI is a prefix of today's structure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu::cupti {

struct Layout {
  const char* cuda;  // "12.4"
  uint32_t api_version;
  size_t kernel;
  size_t copy;
  size_t peer_copy;
  size_t memset;
  size_t graph;
  size_t sync;
  size_t overhead;
  size_t memory;
  size_t pool;
  size_t jit;
  size_t device;
  size_t context;
};

const Layout& layout();
// Whether cuptiActivityEnableDriverApi and -RuntimeApi are there (12.5).
bool has_per_call_switches();
// Buffers for each thread: from 12.3 on.
bool has_thread_buffers();

}  // namespace simgpu::cupti
