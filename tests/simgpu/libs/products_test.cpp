// The stand-ins of cuBLAS, cuBLASLt and cuDNN: what they refuse, what they choose, how long it takes.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "simgpu/libs/cublas/types.h"
#include "simgpu/libs/cublasLt/types.h"
#include "simgpu/libs/cudnn/types.h"
#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

// A library as programs load it: the functions by name.
class Library {
 public:
  explicit Library(const char* soname) : handle_(dlopen(soname, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  template <typename... A>
  int call(const char* name, A... arguments) const {
    const auto function = reinterpret_cast<int (*)(A...)>(dlsym(handle_, name));
    EXPECT_NE(function, nullptr) << name;
    return function ? function(arguments...) : -1;
  }

 private:
  void* handle_;
};

constexpr float kOne = 1;
constexpr int kN = CUBLAS_OP_N, kT = CUBLAS_OP_T;

struct Blas {
  Library library{"libcublas.so.13"};
  void* handle = nullptr;
  Blas() { EXPECT_EQ(library.call("cublasCreate_v2", &handle), 0); }
  int gemm(int op_a, int op_b, int m, int n, int k, int lda, int ldb, int ldc, int type = CUDA_R_16BF,
           int compute = CUBLAS_COMPUTE_32F) const {
    return library.call("cublasGemmEx", handle, op_a, op_b, m, n, k, &kOne, nullptr_, type, lda, nullptr_, type, ldb,
                        &kOne, nullptr_, type, ldc, compute, -1);
  }

 private:
  static constexpr void* nullptr_ = nullptr;
};

std::vector<std::string> symbols(const ChildEnd& end) {
  std::vector<std::string> found;
  for (const Json& line : end.lines("kernel")) found.push_back(line["symbol"]);
  return found;
}

TEST(ProductsStandIn, RefusesWhatTheManualForbids) {
  const ChildEnd end = run_child({}, [] {
    const Blas blas;
    EXPECT_EQ(blas.gemm(kN, kN, 8, 8, 8, 8, 8, 8), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(blas.gemm(kN, kN, 8, 8, 8, 7, 8, 8), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(blas.gemm(kT, kN, 8, 8, 16, 8, 16, 8), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(blas.gemm(kN, kN, 8, 8, 8, 8, 8, 7), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(blas.gemm(kN, kN, -1, 8, 8, 8, 8, 8), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(blas.gemm(7, kN, 8, 8, 8, 8, 8, 8), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(blas.gemm(kN, kN, 8, 8, 8, 8, 8, 8, CUDA_C_16F), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(blas.gemm(kN, kN, 0, 8, 8, 1, 8, 1), CUBLAS_STATUS_SUCCESS);  // nothing to do
    EXPECT_EQ(blas.library.call("cublasSetStream_v2", static_cast<void*>(nullptr), static_cast<void*>(nullptr)),
              CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(blas.library.call("cublasSetWorkspace_v2", blas.handle, reinterpret_cast<void*>(255), size_t{1024}),
              CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(blas.library.call("cublasSspmv_v2", blas.handle), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(blas.library.call("cublasDestroy_v2", blas.handle), 0);
  });
  EXPECT_EQ(end.lines("kernel").size(), 1u);
}

TEST(ProductsStandIn, OneNameForEachArithmeticAndGeneration) {
  const auto run = [](const char* capability) {
    return symbols(run_child({{"SIMGPU_CC", capability}}, [] {
      const Blas blas;
      for (const int type : {CUDA_R_16BF, CUDA_R_16F, CUDA_R_64F})
        EXPECT_EQ(blas.gemm(kT, kN, 1024, 1024, 1024, 1024, 1024, 1024, type, type == CUDA_R_64F ? 70 : 68), 0);
      EXPECT_EQ(blas.gemm(kN, kT, 1024, 1024, 1024, 1024, 1024, 1024, CUDA_R_32F), 0);
      EXPECT_EQ(blas.library.call("cublasSetMathMode", blas.handle, 3), 0);
      EXPECT_EQ(blas.gemm(kN, kT, 1024, 1024, 1024, 1024, 1024, 1024, CUDA_R_32F), 0);
      EXPECT_EQ(blas.gemm(kN, kN, 1023, 1024, 1024, 1024, 1024, 1024, CUDA_R_32F), 0);  // no multiple of 16 bytes
    }));
  };
  const std::vector<std::string> hopper = run("9.0"), ampere = run("8.0");
  ASSERT_EQ(hopper.size(), 6u);
  ASSERT_EQ(ampere.size(), 6u);
  const auto begins = [](const std::string& text, const char* with) { return text.rfind(with, 0) == 0; };
  EXPECT_TRUE(begins(hopper[0], "nvjet_tst_") && hopper[0].substr(hopper[0].size() - 4) == "_TNT") << hopper[0];
  EXPECT_TRUE(begins(hopper[1], "nvjet_hsh_")) << hopper[1];
  EXPECT_TRUE(begins(hopper[2], "cutlass_80_tensorop_d884gemm_")) << hopper[2];
  EXPECT_TRUE(begins(hopper[3], "ampere_sgemm_") && hopper[3].substr(hopper[3].size() - 3) == "_nt") << hopper[3];
  EXPECT_TRUE(begins(hopper[4], "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_")) << hopper[4];
  EXPECT_TRUE(begins(hopper[5], "ampere_sgemm_")) << hopper[5];
  EXPECT_TRUE(begins(ampere[0], "ampere_bf16_s16816gemm_bf16_")) << ampere[0];
  EXPECT_TRUE(begins(ampere[4], "cutlass_80_tensorop_s1688gemm_")) << ampere[4];
}

TEST(ProductsStandIn, EveryKernelOfEveryGenerationIsThere) {
  for (const char* capability : {"8.0", "8.9", "9.0", "10.0", "12.0"}) {
    const ChildEnd end = run_child({{"SIMGPU_CC", capability}}, [] {
      const Library light("libcublasLt.so.13");
      const Blas blas;
      void *handle = nullptr, *description = nullptr, *preference = nullptr;
      EXPECT_EQ(light.call("cublasLtCreate", &handle), 0);
      EXPECT_EQ(light.call("cublasLtMatmulPreferenceCreate", &preference), 0);
      for (const int type : {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF, CUDA_C_32F, CUDA_C_64F, CUDA_R_8I}) {
        for (const int compute : {68, 77}) {
          void* layout = nullptr;
          EXPECT_EQ(light.call("cublasLtMatmulDescCreate", &description, compute, 0), 0);
          EXPECT_EQ(light.call("cublasLtMatrixLayoutCreate", &layout, type, uint64_t{256}, uint64_t{256}, int64_t{256}),
                    0);
          cublasLtMatmulHeuristicResult_t results[16];
          int found = 0;
          EXPECT_EQ(light.call("cublasLtMatmulAlgoGetHeuristic", handle, description, layout, layout, layout, layout,
                               preference, 16, results, &found),
                    0);
          EXPECT_GE(found, 1);
          for (int i = 0; i < found; ++i) {
            void* const none = nullptr;
            // A handle of cuBLAS does too: PyTorch gives that one.
            void* const either = i % 2 ? handle : blas.handle;
            EXPECT_EQ(results[i].state, 0);
            EXPECT_EQ(light.call("cublasLtMatmul", either, description, &kOne, none, layout, none, layout, &kOne, none,
                                 layout, none, layout, &results[i].algo, none, size_t{0}, none),
                      0)
                << type << " " << compute << " " << i;
          }
        }
      }
    });
    std::set<std::string> names;
    for (const std::string& symbol : symbols(end)) names.insert(symbol);
    EXPECT_GE(names.size(), 10u) << capability;
  }
}

// Of a product of 2 × 8192³ operations: what its kernel takes on 132 multiprocessors at 1.98 GHz, 4096 operations a clock, 70 % of it.
TEST(ProductsStandIn, TakesTheTimeOfItsOperations) {
  const auto run = [](const Variables& variables) {
    const ChildEnd end =
        run_child(variables, [] { EXPECT_EQ(Blas().gemm(kT, kN, 8192, 8192, 8192, 8192, 8192, 8192), 0); });
    const Json line = end.lines("kernel").at(0);
    return line["end_ns"].get<double>() - line["start_ns"].get<double>();
  };
  const double wanted = 2000 + 2 * std::pow(8192.0, 3) / (4096 * 132 * 1.98 * 0.7);
  EXPECT_NEAR(run({}), wanted, wanted * 0.01);
  EXPECT_EQ(run({{"SIMGPU_KERNEL_TIME", "nvjet=77us"}}), 77'000);
}

TEST(ProductsStandIn, SeveralSizesInOneCallAreOneKernel) {
  const ChildEnd end = run_child({}, [] {
    const Blas blas;
    const int ops[] = {kN, kN}, m[] = {64, 4096}, n[] = {32, 4096}, k[] = {16, 4096}, sizes[] = {3, 2};
    const float scalars[] = {1, 1};
    const void* const* none = nullptr;
    const auto multiply = [&](const int* ldc) {
      return blas.library.call("cublasSgemmGroupedBatched", blas.handle, ops, ops, m, n, k, scalars, none, m, none, k,
                               scalars, none, ldc, 2, sizes);
    };
    EXPECT_EQ(multiply(m), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(multiply(n), CUBLAS_STATUS_INVALID_VALUE);
  });
  ASSERT_EQ(end.lines("kernel").size(), 1u);
  const Json line = end.lines("kernel").at(0);
  const double operations = 2 * (3 * 64.0 * 32 * 16 + 2 * std::pow(4096.0, 3));
  EXPECT_NEAR(line["end_ns"].get<double>() - line["start_ns"].get<double>(),
              2000 + operations / (256 * 132 * 1.98 * 0.7), 5000);
}

TEST(ProductsStandIn, IsCapturedIntoAGraph) {
  const ChildEnd end = run_child({}, [] {
    const Blas blas;
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(blas.library.call("cublasSetStream_v2", blas.handle, static_cast<void*>(stream)), 0);
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(blas.gemm(kN, kN, 512, 512, 512, 512, 512, 512),
              0);  // the first launch: the kernels are loaded meanwhile
    ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  });
  EXPECT_EQ(end.lines("kernel").size(), 3u);
  EXPECT_EQ(end.lines("node").size(), 1u);
}

TEST(ProductsStandIn, SaysItsVersionByItsSoname) {
  run_child({}, [] {
    for (const auto& [soname, least, most] :
         {std::tuple{"libcublas.so.12", 120000, 130000}, {"libcublas.so.13", 130000, 140000}}) {
      int version = 0;
      EXPECT_EQ(Library(soname).call("cublasGetVersion_v2", static_cast<void*>(nullptr), &version), 0);
      EXPECT_TRUE(version >= least && version < most) << soname << " " << version;
    }
    EXPECT_EQ(Library("libcudnn.so.8").call("cudnnGetVersion") / 1000, 8);
    EXPECT_EQ(Library("libcudnn.so.9").call("cudnnGetVersion") / 10000, 9);
    EXPECT_EQ(Library("libcudnn.so.8").call("cudnnSetStream", static_cast<void*>(nullptr), static_cast<void*>(nullptr)),
              1);
    EXPECT_EQ(Library("libcudnn.so.9").call("cudnnSetStream", static_cast<void*>(nullptr), static_cast<void*>(nullptr)),
              CUDNN_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(Library("libcudnn.so.8").call("cudnnFusedOpsExecute"), 9);
    EXPECT_EQ(Library("libcudnn.so.9").call("cudnnFusedOpsExecute"), CUDNN_STATUS_NOT_SUPPORTED);
  });
}

// Bytes that parts of the weights took, each once.
class WeightSpace {
 public:
  explicit WeightSpace(size_t bytes) : used_(bytes) {}
  const void* begin() const { return used_.data(); }
  void take(const void* address, const int (&dims)[3]) {
    if (!address) return;
    const size_t first = static_cast<size_t>(static_cast<const char*>(address) - used_.data()),
                 size = static_cast<size_t>(dims[0] * dims[1] * dims[2]) * 4;
    ASSERT_LE(first + size, used_.size());
    for (size_t i = first; i < first + size; ++i) ASSERT_EQ(used_[i]++, 0) << i;
  }
  bool full() const { return std::count(used_.begin(), used_.end(), 1) == static_cast<std::ptrdiff_t>(used_.size()); }

 private:
  std::vector<char> used_;
};

// LSTM, two biases, both directions, 2 layers, 24 → 40, projected to 16.
TEST(RecurrentStandIn, WeightsOfAllGatesFillTheirSpaceWithoutGapOrOverlap) {
  run_child({}, [] {
    const Library dnn("libcudnn.so.9");
    void *handle = nullptr, *rnn = nullptr, *matrix = nullptr, *bias = nullptr;
    EXPECT_EQ(dnn.call("cudnnCreate", &handle), 0);
    EXPECT_EQ(dnn.call("cudnnCreateRNNDescriptor", &rnn), 0);
    EXPECT_EQ(dnn.call("cudnnCreateTensorDescriptor", &matrix), 0);
    EXPECT_EQ(dnn.call("cudnnCreateTensorDescriptor", &bias), 0);
    EXPECT_EQ(dnn.call("cudnnSetRNNDescriptor_v8", rnn, 0, 2, 2, 1, 0, 0, 0, 0, 24, 40, 16, 2,
                       static_cast<void*>(nullptr), 0u),
              0);
    size_t bytes = 0;
    EXPECT_EQ(dnn.call("cudnnGetRNNWeightSpaceSize", handle, rnn, &bytes), 0);
    WeightSpace weights(bytes);
    for (int layer = 0; layer < 4; ++layer) {
      for (int id = 0; id < 9; ++id) {
        void* at[2] = {};
        int type = 0, count = 0, dims[3] = {}, strides[3] = {};
        EXPECT_EQ(dnn.call("cudnnGetRNNWeightParams", handle, rnn, layer, bytes, weights.begin(), id, matrix, &at[0],
                           bias, &at[1]),
                  0);
        EXPECT_EQ(dnn.call("cudnnGetTensorNdDescriptor", matrix, 3, &type, &count, dims, strides), 0);
        weights.take(at[0], dims);
        EXPECT_EQ(dnn.call("cudnnGetTensorNdDescriptor", bias, 3, &type, &count, dims, strides), 0);
        weights.take(at[1], dims);
      }
    }
    EXPECT_TRUE(weights.full());
  });
}

TEST(RecurrentStandIn, TheInterfaceOfVersion6FillsTheSameSpace) {
  run_child({}, [] {
    const Library dnn("libcudnn.so.8");
    void *handle = nullptr, *rnn = nullptr, *x = nullptr, *all = nullptr, *part = nullptr;
    EXPECT_EQ(dnn.call("cudnnCreate", &handle), 0);
    EXPECT_EQ(dnn.call("cudnnCreateRNNDescriptor", &rnn), 0);
    EXPECT_EQ(dnn.call("cudnnCreateTensorDescriptor", &x), 0);
    EXPECT_EQ(dnn.call("cudnnCreateFilterDescriptor", &all), 0);
    EXPECT_EQ(dnn.call("cudnnCreateFilterDescriptor", &part), 0);
    const int sizes[] = {5, 24, 1}, steps[] = {24, 1, 1};
    EXPECT_EQ(dnn.call("cudnnSetTensorNdDescriptor", x, 0, 3, sizes, steps), 0);
    EXPECT_EQ(dnn.call("cudnnSetRNNDescriptor_v6", handle, rnn, 40, 2, static_cast<void*>(nullptr), 0, 1, 2, 0, 0), 0);
    EXPECT_EQ(dnn.call("cudnnSetRNNProjectionLayers", handle, rnn, 16, 0), 0);
    size_t bytes = 0;
    EXPECT_EQ(dnn.call("cudnnGetRNNParamsSize", handle, rnn, x, &bytes, 0), 0);
    WeightSpace weights(bytes);
    for (int layer = 0; layer < 4; ++layer) {
      for (int id = 0; id < 9; ++id) {
        for (const char* name : {"cudnnGetRNNLinLayerMatrixParams", "cudnnGetRNNLinLayerBiasParams"}) {
          void* at = nullptr;
          int type = 0, format = 0, count = 0, dims[3] = {};
          EXPECT_EQ(dnn.call(name, handle, rnn, layer, x, all, weights.begin(), id, part, &at), 0);
          EXPECT_EQ(dnn.call("cudnnGetFilterNdDescriptor", part, 3, &type, &format, &count, dims), 0);
          weights.take(at, dims);
        }
      }
    }
    EXPECT_TRUE(weights.full());
  });
}

}  // namespace
}  // namespace simgpu
