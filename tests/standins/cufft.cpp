#include "tests/standins/standin.h"

namespace standin {

struct FftShape {
  long long x, y, z, batch;
  int type;
};
struct Plan {
  FftShape shape{};
  void* stream = nullptr;
};
static Plan plans[1 << 16];

static void fft_plan(const Did&, int plan, const FftShape& shape) { plans[plan].shape = shape; }
template <typename I>
void fft_plan_many(const Did& did, int plan, int rank, const I* n, int type, long long batch) {
  fft_plan(did, plan, {n[0], rank > 1 ? n[1] : 1, rank > 2 ? n[2] : 1, batch, type});
}
constexpr int fft_type(int input, int output) {
  return input == output ? (input == kC64F ? kFftZ2Z : kFftC2C) : kFftR2C;
}
static void fft_stream(const Did&, int plan, void* stream) { plans[plan].stream = stream; }
static void fft_gone(const Did&, int) {}
// One pass a dimension.
static void fft(const Did&, int plan, int, int) {
  const FftShape& shape = plans[plan].shape;
  for (const long long n : {shape.x, shape.y, shape.z}) {
    if (n > 1) launch("_Z10vector_fftILj" + std::to_string(n) + "EEvv", plans[plan].stream, tiles(shape.batch, 4), 128);
  }
}

}  // namespace standin

#define GT_BODY_cublas(name, signature, record)
#define GT_BODY_cublasLt(name, signature, record)
#define GT_BODY_cudnn(name, signature, record)
#define GT_BODY_cusparse(name, signature, record)
#define GT_BODY_cufft(name, signature, record) GT_STANDIN_BODY(name, signature, record)
#define GT_BODY_nccl(name, signature, record)
#define GT_LIBRARY(name, library, signature, forwarded, record) GT_BODY_##library(name, signature, record)
#include "interpose/library.def"

GT_EXPORT int cufftCreate(int* plan) { return standin::Did{"cufftCreate"}.out(plan), 0; }
