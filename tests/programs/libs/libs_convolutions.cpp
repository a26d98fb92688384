// Convolutions, and Fourier transforms of every kind of plan.
#include <cudnn.h>
#include <cufft.h>
#include <cufftXt.h>

#include "tests/programs/libs/libs_check.h"

namespace {

void convolutions(CUstream stream) {
  cudnnHandle_t handle = nullptr;
  MUST(cudnnCreate(&handle));
  MUST(cudnnSetStream(handle, reinterpret_cast<cudaStream_t>(stream)));
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t c = nullptr;
  MUST(cudnnCreateTensorDescriptor(&x));
  MUST(cudnnCreateTensorDescriptor(&y));
  MUST(cudnnCreateFilterDescriptor(&w));
  MUST(cudnnCreateConvolutionDescriptor(&c));
  // 8 images of 64 channels, 56 x 56; 128 filters of 3 x 3 in 2 groups; padding 1, stride 2.
  MUST(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 8, 64, 56, 56));
  MUST(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 8, 128, 28, 28));
  MUST(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 128, 32, 3, 3));
  const int pad[] = {1, 1}, stride[] = {2, 2}, dilation[] = {1, 1};
  MUST(cudnnSetConvolutionNdDescriptor(c, 2, pad, stride, dilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  MUST(cudnnSetConvolutionGroupCount(c, 2));
  MUST(cudnnSetConvolutionMathType(c, CUDNN_TENSOR_OP_MATH));
  const float one = 1, zero = 0;
  MUST(cudnnConvolutionForward(handle, &one, x, nullptr, w, nullptr, c,
                               CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, nullptr, 0, &zero, y, nullptr));
  MUST(cudnnConvolutionBackwardData(handle, &one, w, nullptr, y, nullptr, c, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, nullptr,
                                    0, &zero, x, nullptr));
  MUST(cudnnConvolutionBackwardFilter(handle, &one, x, nullptr, y, nullptr, c, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                      nullptr, 0, &zero, w, nullptr));
  MUST(cudnnDestroy(handle));
}

void transforms(CUstream stream) {
  const auto on = reinterpret_cast<cudaStream_t>(stream);
  CUdeviceptr memory = 0;  // computed is nothing, and so all of them may share it
  MUST(cuMemAlloc(&memory, 64 << 20));
  auto* const single = reinterpret_cast<cufftComplex*>(memory);
  auto* const twice = reinterpret_cast<cufftDoubleComplex*>(memory);
  cufftHandle plan = 0, plane = 0, many = 0, large = 0;
  MUST(cufftPlan1d(&plan, 1024, CUFFT_C2C, 16));
  MUST(cufftSetStream(plan, on));
  MUST(cufftExecC2C(plan, single, single, CUFFT_FORWARD));
  MUST(cufftExecC2C(plan, single, single, CUFFT_INVERSE));
  MUST(cufftPlan2d(&plane, 256, 128, CUFFT_R2C));
  MUST(cufftSetStream(plane, on));
  MUST(cufftExecR2C(plane, reinterpret_cast<cufftReal*>(memory), single));
  int sizes[] = {64, 64, 64};
  MUST(cufftPlanMany(&many, 3, sizes, nullptr, 1, 0, nullptr, 1, 0, CUFFT_Z2Z, 4));
  MUST(cufftExecZ2Z(many, twice, twice, CUFFT_FORWARD));
  long long length[] = {4096};
  std::size_t work = 0;
  MUST(cufftCreate(&large));
  MUST(cufftSetStream(large, on));
  MUST(cufftMakePlanMany64(large, 1, length, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2C, 8, &work));
  MUST(cufftXtExec(large, single, single, CUFFT_FORWARD));
  MUST(cufftDestroy(plan));
}

}  // namespace

int main() {
  const CUstream stream = begin_program();
  convolutions(stream);
  transforms(stream);
  return end_program(stream);
}
