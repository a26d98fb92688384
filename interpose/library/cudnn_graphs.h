// What cuDNN's graph interface was told. A plan is built out of descriptors, each given to the next by its address, and most are destroyed
// before the plan is executed: so what a tensor, an operation, a graph says is copied into whatever it was given to, until a plan knows what
// it computes. Only setters and getters that the program calls itself are listened to; none is called.
//   · Host functions, none of them frequent; any thread. A table of fixed size: what finds no place is not known, and never wrong.
#pragma once

#include "base/types.h"

namespace gputrace {

inline constexpr int kGraphDims = 8;  // CUDNN_DIM_MAX

struct GraphTensor {
  i32 type;  // cudnnDataType_t; -1: not known
  i32 count;
  u32 dims[kGraphDims];
};

// What a graph, and with it a plan, computes.
struct GraphWork {
  u64 flops;         // of its products and convolutions; 0: it has none, or one is not known
  u32 convolutions;  // how many; with exactly one and no product the operands are its input, filter and output
  u32 products;
  u32 what;  // ConvolutionKind
  i32 type, compute;
  GraphTensor input, filter, output;
};

// Each after the call that it is named after has succeeded.
void graph_descriptor_made(void* descriptor, int type);
void graph_descriptor_gone(void* descriptor);
void graph_attribute_set(void* descriptor, int attribute, i64 count, const void* values);
void graph_attribute_got(void* descriptor, int attribute, i64 count, const void* values);
// False: not a plan that was built in sight.
bool find_graph_work(void* plan, GraphWork& work);

}  // namespace gputrace
