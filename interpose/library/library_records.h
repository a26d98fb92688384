// The words of library.def's record column. None of them is hot: a library call costs microseconds. What a call's
// arguments do not say is taken from the library's own getters after the call; they are host functions that change
// nothing, and they are called only while library calls are recorded.
#pragma once

#include <cstddef>

#include "interpose/hot/traced.h"
#include "interpose/library/library_route.h"
#include "trace/record.h"

namespace gputrace {

// cudaDataType, cufftType: numbers that are part of the ABI.
enum : int { kR32F = 0, kR64F = 1, kR16F = 2, kC32F = 4, kC64F = 5, kC16F = 6 };
enum : int { kFftR2C = 0x2a, kFftC2R = 0x2c, kFftC2C = 0x29, kFftD2Z = 0x6a, kFftZ2D = 0x6c, kFftZ2Z = 0x69 };

// ncclUniqueId, passed by value: 128 bytes since NCCL 2.0.
struct NcclId {
  char internal[128];
};

inline u64 bits(const void* pointer) { return reinterpret_cast<u64>(pointer); }
inline u64 positive(long long value) { return value > 0 ? static_cast<u64>(value) : 0; }

inline constexpr u16 kNcclInProgress = 7;  // ncclInProgress

struct LibraryCall {
  const FinishedCall& call;
  void* real;
  bool collected;  // false: calls of libraries are not wanted, only what this one defines
  template <typename T>
  T out(const T* pointer) const {
    return call.out(pointer);
  }
  // NCCL's communicators that do not block answer ncclInProgress and go on.
  bool ok_or_begun() const { return call.ok() || call.head >> 48 == kNcclInProgress; }
  template <typename T>
  T begun(const T* pointer) const {
    return ok_or_begun() && pointer ? *pointer : T{};
  }
};

void object(const LibraryCall& did, u64 handle);
inline void object(const LibraryCall& did, const void* handle) { object(did, bits(handle)); }

// ------------------------------------------------------------------ products
struct Gemm {
  void* handle;
  int op_a, op_b;  // cublasOperation_t: N, T, C
  long long m, n, k;
  const void *a, *b, *c;
  long long lda, ldb, ldc;
  int type_a, type_b, type_c;  // cudaDataType
  int compute = -1;            // cublasComputeType_t; before CUDA 11 a cudaDataType
  long long batch = 1;
  u32 flags = 0;  // MatmulFlags beside those that follow from the rest
};
void gemm(const LibraryCall& did, const Gemm& g);

template <typename I>
struct GemmGroups {
  void* handle;
  const int *op_a, *op_b;
  const I *m, *n, *k;
  const void *a, *b, *c;
  const I *lda, *ldb, *ldc;
  int type_a, type_b, type_c, compute;
  I groups;
  const I* sizes;
};
// One record a group, at most this many.
inline constexpr long long kMaxGroups = 4096;
template <typename I>
void gemm_groups(const LibraryCall& did, const GemmGroups<I>& g) {
  if (!did.call.ok() || g.groups <= 0 || !g.m || !g.n || !g.k || !g.sizes || !g.op_a || !g.op_b || !g.lda || !g.ldb ||
      !g.ldc)
    return object(did, g.handle);
  for (I i = 0; i < g.groups && i < kMaxGroups; ++i) {
    gemm(did, {g.handle, g.op_a[i], g.op_b[i], g.m[i], g.n[i], g.k[i], g.a, g.b, g.c, g.lda[i], g.ldb[i], g.ldc[i],
               g.type_a, g.type_b, g.type_c, g.compute, g.sizes[i], kPointerBatch});
  }
}

struct LtMatmul {
  void *handle, *description;
  const void *a, *b, *d;
  void *layout_a, *layout_b, *layout_d;
  void* stream;
};
void lt_matmul(const LibraryCall& did, const LtMatmul& product);

struct SparseProduct {
  void* handle;
  int op_a, op_b;
  const void *a, *c;  // descriptors: of the sparse matrix, of the dense result
  bool vector;        // the result is a vector
};
void sparse_product(const LibraryCall& did, const SparseProduct& product);

// ------------------------------------------------------------------ convolutions
struct ConvolutionCall {
  ConvolutionKind what;
  void *handle, *input, *filter, *output, *convolution;  // descriptors; of data or of their gradients
};
void convolution(const LibraryCall& did, const ConvolutionCall& c);
// A compiled graph of operations: a plan tells nothing of shapes, but how it was built does.
void backend_made(const LibraryCall& did, void* descriptor, int type);
void backend_gone(const LibraryCall& did, void* descriptor);
void backend_set(const LibraryCall& did, void* descriptor, int attribute, long long count, const void* values);
void backend_got(const LibraryCall& did, void* descriptor, int attribute, long long wanted, const long long* count,
                 const void* values);
void backend_execute(const LibraryCall& did, void* handle, void* plan);

// ------------------------------------------------------------------ transforms
struct FftShape {
  long long x, y, z, batch;
  int type;  // cufftType; 0: not known
};
// Plans by their handle, a bounded table: an execution whose plan fell out of it says that its size is not known.
void fft_plan(const LibraryCall& did, int plan, const FftShape& shape);
template <typename I>
void fft_plan_many(const LibraryCall& did, int plan, int rank, const I* n, int type, long long batch) {
  FftShape shape{0, 0, 0, 0, type};  // nothing known
  if (did.call.ok() && n && rank >= 1 && rank <= 3)
    shape = {n[0], rank > 1 ? n[1] : 1, rank > 2 ? n[2] : 1, batch, type};
  fft_plan(did, plan, shape);
}
constexpr int fft_type(int input, int output) {
  if (input == kC32F && output == kC32F) return kFftC2C;
  if (input == kR32F && output == kC32F) return kFftR2C;
  if (input == kC32F && output == kR32F) return kFftC2R;
  if (input == kC64F && output == kC64F) return kFftZ2Z;
  if (input == kR64F && output == kC64F) return kFftD2Z;
  if (input == kC64F && output == kR64F) return kFftZ2D;
  return 0;
}
void fft_stream(const LibraryCall& did, int plan, void* stream);
void fft_gone(const LibraryCall& did, int plan);
// type 0: what the plan was made for.
void fft(const LibraryCall& did, int plan, int type, int direction);

// ------------------------------------------------------------------ NCCL
struct CollectiveCall {
  CollectiveKind what;
  const void *send, *receive;
  size_t count;
  int type;
  void *communicator, *stream;
  int reduction, peer;
};
void collective(const LibraryCall& did, const CollectiveCall& c);
u64 id_hash(const NcclId* ids, int count);
void communicator_made(const LibraryCall& did, void* communicator, u64 id, int rank, int ranks);
void communicators_made(const LibraryCall& did, void* const* communicators, int count, const int* devices);
void communicator_split(const LibraryCall& did, void* parent, int color, void* child);
void communicator_gone(const LibraryCall& did, void* communicator);

}  // namespace gputrace
