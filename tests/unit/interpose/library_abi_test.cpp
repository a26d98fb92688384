// Every row of interpose/library.def against the vendor's header, where the toolkit has it: as many parameters, each of
// the same kind and size as the calling convention sees them, and an enum as result.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define GT_HAVE_cublas 1
#endif
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define GT_HAVE_cublasLt 1
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define GT_HAVE_cudnn 1
#endif
#if __has_include(<cusparse.h>)
#include <cusparse.h>
#define GT_HAVE_cusparse 1
#endif
#if __has_include(<cufftXt.h>)
#include <cufft.h>
#include <cufftXt.h>
#define GT_HAVE_cufft 1
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#if NCCL_VERSION_CODE >= 22800  // AlltoAll, Gather, Scatter
#define GT_HAVE_nccl 1
#endif
#endif

namespace {

struct NcclId {
  char internal[128];
};

// What the calling convention makes of a parameter.
template <typename A, typename B>
constexpr bool passed_alike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) return std::is_pointer_v<A> && std::is_pointer_v<B>;
  if constexpr (std::is_class_v<A> || std::is_class_v<B>) {
    if (!std::is_class_v<A> || !std::is_class_v<B>) return false;
    return std::pair{sizeof(A), alignof(A)} == std::pair{sizeof(B), alignof(B)};
  }
  const bool whole_a = std::is_integral_v<A> || std::is_enum_v<A>, whole_b = std::is_integral_v<B> || std::is_enum_v<B>;
  return whole_a == whole_b && sizeof(A) == sizeof(B);  // NOLINT(bugprone-sizeof-expression): of pointers too
}

template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename... A, typename R, typename... B>
struct Alike<int (*)(A...), R (*)(B...)> {
  static constexpr bool value() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return std::is_enum_v<R> && sizeof(R) == sizeof(int) && (passed_alike<A, B>() && ...);
  }
};

// The header overloads these for C++, so they have no single type; their _64 twins are checked.
#define GT_OVERLOADED_cublasGemmEx ~, 1
#define GT_OVERLOADED_cublasGemmBatchedEx ~, 1
#define GT_OVERLOADED_cublasGemmStridedBatchedEx ~, 1
#define GT_SECOND(first, second, ...) second
#define GT_IS(...) GT_SECOND(__VA_ARGS__, 0, ~)
#define GT_CHECK_1(name, signature)
#define GT_CHECK_0(name, signature) \
  static_assert(Alike<int(*) signature, decltype(&::name)>::value(), #name " is not what the vendor's header says");
#define GT_CHECK(overloaded) GT_CHECK_I(overloaded)
#define GT_CHECK_I(overloaded) GT_CHECK_##overloaded
#define GT_ROW(name, signature) GT_CHECK(GT_IS(GT_OVERLOADED_##name))(name, signature)
#ifdef GT_HAVE_cublas
#define GT_ROW_cublas GT_ROW
#else
#define GT_ROW_cublas(name, signature)
#endif
#ifdef GT_HAVE_cublasLt
#define GT_ROW_cublasLt GT_ROW
#else
#define GT_ROW_cublasLt(name, signature)
#endif
#ifdef GT_HAVE_cudnn
#define GT_ROW_cudnn GT_ROW
#else
#define GT_ROW_cudnn(name, signature)
#endif
#ifdef GT_HAVE_cusparse
#define GT_ROW_cusparse GT_ROW
#else
#define GT_ROW_cusparse(name, signature)
#endif
#ifdef GT_HAVE_cufft
#define GT_ROW_cufft GT_ROW
#else
#define GT_ROW_cufft(name, signature)
#endif
#ifdef GT_HAVE_nccl
#define GT_ROW_nccl GT_ROW
#else
#define GT_ROW_nccl(name, signature)
#endif
#define GT_LIBRARY(name, library, signature, forwarded, record) GT_ROW_##library(name, signature)
#include "interpose/library.def"

// The attributes and types that interpose/library/library_records.cpp asks for and writes by their number.
#ifdef GT_HAVE_cublasLt
static_assert(CUBLASLT_MATRIX_LAYOUT_TYPE == 0 && CUBLASLT_MATRIX_LAYOUT_ROWS == 2 &&
              CUBLASLT_MATRIX_LAYOUT_COLS == 3 && CUBLASLT_MATRIX_LAYOUT_LD == 4 &&
              CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == 5);
static_assert(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE == 0 && CUBLASLT_MATMUL_DESC_TRANSA == 3 &&
              CUBLASLT_MATMUL_DESC_TRANSB == 4);
#endif
#ifdef GT_HAVE_cublas
static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_R_16F == 2 && CUDA_C_32F == 4 && CUDA_C_64F == 5 &&
              CUDA_R_16BF == 14);
static_assert(CUDA_R_8F_E4M3 == 28 && CUDA_R_8F_E5M2 == 29 && CUDA_R_8I == 3 && CUDA_R_4F_E2M1 == 33);
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1 && CUBLAS_OP_C == 2);
static_assert(CUBLAS_COMPUTE_32F == 68 && CUBLAS_COMPUTE_32F_PEDANTIC == 69 && CUBLAS_COMPUTE_32F_FAST_16F == 74 &&
              CUBLAS_COMPUTE_32F_FAST_16BF == 75 && CUBLAS_COMPUTE_32F_FAST_TF32 == 77 &&
              CUBLAS_TF32_TENSOR_OP_MATH == 3);
#endif
#ifdef GT_HAVE_cufft
static_assert(CUFFT_R2C == 0x2a && CUFFT_C2R == 0x2c && CUFFT_C2C == 0x29 && CUFFT_D2Z == 0x6a && CUFFT_Z2D == 0x6c &&
              CUFFT_Z2Z == 0x69);
#endif
#ifdef GT_HAVE_nccl
static_assert(ncclFloat16 == 6 && ncclFloat32 == 7 && ncclFloat64 == 8 && ncclBfloat16 == 9 && ncclInProgress == 7);
static_assert(sizeof(ncclUniqueId) == 128);
#endif
#ifdef GT_HAVE_cudnn
static_assert(CUDNN_DATA_FLOAT == 0 && CUDNN_DATA_HALF == 2 && CUDNN_DATA_BFLOAT16 == 9 && CUDNN_FMA_MATH == 3);
#endif

TEST(LibraryAbi, HeadersThatWereChecked) {
  int checked = 0;
#ifdef GT_HAVE_cublas
  ++checked;
#endif
#ifdef GT_HAVE_cublasLt
  ++checked;
#endif
#ifdef GT_HAVE_cudnn
  ++checked;
#endif
#ifdef GT_HAVE_cusparse
  ++checked;
#endif
#ifdef GT_HAVE_cufft
  ++checked;
#endif
#ifdef GT_HAVE_nccl
  ++checked;
#endif
  if (checked == 0) GTEST_SKIP() << "the toolkit has none of the libraries' headers";
  RecordProperty("headers", checked);
}

}  // namespace
