// What a process's calls of vendor libraries were: one row per call, shape and types, with the kernels that they
// caused. Made by LibraryCalls; constant afterwards.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

enum class LibraryKind : u8 { Other, Matmul, Convolution, Fft, Collective };

// What tells rows apart beside the call. Fields that a kind does not have are 0.
struct LibraryShape {
  LibraryKind kind = LibraryKind::Other;
  // Matmul: D is m x n, k inner, `batch` of them. Fft: x, y, z, batch. Collective: elements in m.
  u64 m = 0, n = 0, k = 0, batch = 0;
  u64 nonzeros = 0;
  // Matmul: cudaDataType of A, B, D; Convolution: cudnnDataType_t; Fft: cufftType; Collective: ncclDataType_t.
  i32 type_a = -1, type_b = -1, type_c = -1;
  i32 compute = -1, math_mode = -1;
  u32 flags = 0;       // MatmulFlags
  u32 what = 0;        // ConvolutionKind, CollectiveKind
  u32 input[5] = {};   // Convolution: n, c, d, h, w
  u32 filter[5] = {};  // Convolution: channels out, d, h, w, groups
  u64 flops = 0;       // of one call; 0: not known
  u64 lda = 0, ldb = 0, ldc = 0;
  bool operator==(const LibraryShape&) const = default;
};

struct LibraryRow {
  u16 call = 0;  // id
  LibraryShape shape;
  u32 communicator = 0xffffffffu;  // Collective: index in LibraryFacts::communicators
  u64 calls = 0;
  u64 captured_calls = 0;  // of `calls`: recorded into a graph, nothing ran
  u64 kernels = 0;         // launches that the calls made, outside captures
  u64 captured_kernels = 0;
  u64 timed_kernels = 0;  // of `kernels`, those whose device times are known
  u64 timed_calls = 0;    // Collective, grouped products: calls whose device time is known whole
  u64 device_ns = 0;      // sum of those times
  u64 host_ns = 0;        // in the calls, nested calls included
};

// A kernel (index in ProcessTrace::kernels) as a library row launched it.
struct LibraryUse {
  u32 kernel = 0;
  u32 row = 0;
  u64 launches = 0;
  u64 device_ns = 0;
};

struct CommunicatorFacts {
  u64 handle = 0;
  u64 id = 0;  // the same on every rank; 0: not known
  i32 rank = -1, ranks = -1, device = -1;
};

// One collective, in the order of its communicator: what is matched over ranks.
struct CollectiveInstance {
  u32 communicator = 0;  // index
  u32 row = 0;
  u32 number = 0;  // of this communicator's collectives in this process, from 0 (send and receive have none)
  u64 device_ns = 0;
  bool timed = false;
};

// Of the calls of one origin that compute something whose FLOPs are told, outside captures.
struct OriginFlops {
  u64 flops = 0;
  u64 calls = 0, untold = 0;  // of `calls`: products, convolutions and transforms whose FLOPs are not known
};

struct LibraryFacts {
  bool collected = false;
  std::vector<LibraryRow> rows;
  std::vector<LibraryUse> uses;  // ordered by kernel
  std::vector<CommunicatorFacts> communicators;
  std::vector<CollectiveInstance> collectives;  // at most kCollectivesKept
  u64 collectives_not_kept = 0;
  std::vector<OriginFlops> flops;  // by the number of the CallOrigin; may be shorter
  u64 launches = 0;                // launches of the process that a library call made
  u64 launches_forgotten = 0;      // of calls whose end came too late, or device times that did
  static constexpr std::size_t kCollectivesKept = 500'000;
};

// Which library a call belongs to, by the prefix of its name: cuBLAS, cuBLASLt, cuDNN, cuSPARSE, cuFFT, NCCL.
std::string library_of(const std::string& call);

// The shape as text: "m×n×k", with "×batch" where there is more than one; "" for what has none.
std::string shape_text(const LibraryShape& shape);
// Types of the operands: "fp16", "fp16→fp32" where D's differs.
std::string dtype_text(const LibraryShape& shape);
// The precision in which it multiplies, in the words of `kernels`: tf32 for fp32 operands in tf32 mode; "" not known.
std::string arithmetic_of(const LibraryShape& shape);

// FLOPs of one call; 0: not known.
//   product      2 m n k batch (complex: 8); sparse: 2 nonzeros n
//   convolution  as the record says
//   transform    5 N log2 N batch, the convention of the FFTW benchmarks and of cuFFT's own; half of it for real ones
u64 flops_of(const LibraryShape& shape);

// Bytes of one collective by the convention of the nccl-tests (the larger of send and receive buffer of one rank), and
// the factor from algorithm to bus bandwidth. ranks < 1: not known, 0.
u64 collective_bytes(const LibraryShape& shape, i32 ranks);
double bus_factor(u32 what, i32 ranks);
const char* collective_name(u32 what);

inline constexpr u16 kNcclInProgress = 7;  // of a communicator that does not block: the call was taken

// Whether a result other than 0 of `call` (CallFacts::level tells whose results they are) tells of nothing that went
// wrong. Of CUDA's calls: "not ready" is what a query asks for; "deinitialized" is what the runtime gets for the
// libraries and contexts that it gives back when the process ends, since the driver has ended before it (seen with
// CUDA 13.0 in every program). Of a library's: NCCL's "in progress".
bool is_plain_answer(std::string_view level, std::string_view call, u16 result);

}  // namespace gputrace
