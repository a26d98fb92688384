#pragma once

#define CUSPARSE_ENTRY(name, parameters) \
  extern "C" __attribute__((visibility("default"))) cusparseStatus_t name parameters
