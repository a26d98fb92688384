// As in NCCL each function has two names: pncclX is the function, ncclX the same, for tools to put theirs in front.
#pragma once

#include "simgpu/libs/nccl/types.h"

#define NCCL_ENTRY(result, name, parameters)                                                                  \
  extern "C" __attribute__((visibility("default"))) result name parameters __attribute__((alias("p" #name))); \
  extern "C" __attribute__((visibility("default"))) result p##name parameters
