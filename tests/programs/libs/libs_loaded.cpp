// The same libraries found by dlopen and dlsym, as Python's bindings find them; and the questions that a program asks
// to learn whether a library is there, whose answers must be what they are without us.
#include <cublas_v2.h>
#include <dlfcn.h>
#include <nccl.h>

#include <cstring>

#include "tests/programs/libs/libs_check.h"

namespace {

template <typename F>
F function(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) {
    std::fprintf(stderr, "%s: %s\n", name, dlerror());
    std::exit(72);
  }
  return reinterpret_cast<F>(found);
}
#define FUNCTION(library, name) function<decltype(&::name)>(library, #name)

void probe(const char* when) {
  void* self = dlopen(nullptr, RTLD_LAZY);
  for (const char* name :
       {"ncclCommInitRank", "cublasSgemm_v2", "cudnnConvolutionForward", "cufftExecC2C", "cusparseSpMM"})
    std::printf("%s %s: %s %s %s\n", when, name, dlsym(RTLD_DEFAULT, name) ? "yes" : "no",
                dlsym(RTLD_NEXT, name) ? "yes" : "no", dlsym(self, name) ? "yes" : "no");
}

}  // namespace

int main(int argc, char** argv) {
  const int mode = argc > 1 && std::strcmp(argv[1], "mode=global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  const CUstream stream = begin_program();
  probe("before");
  void* blas = dlopen("libcublas.so.13", RTLD_NOW | mode);
  void* nccl = dlopen("libnccl.so.2", RTLD_NOW | mode);
  if (!blas || !nccl) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 72;
  }
  probe("after");
  cublasHandle_t handle = nullptr;
  const float one = 1;
  MUST(FUNCTION(blas, cublasCreate_v2)(&handle));
  MUST(FUNCTION(blas, cublasSetStream_v2)(handle, reinterpret_cast<cudaStream_t>(stream)));
  MUST(FUNCTION(blas, cublasSgemm_v2)(handle, CUBLAS_OP_N, CUBLAS_OP_N, 256, 128, 64, &one, nullptr, 256, nullptr, 64,
                                      &one, nullptr, 256));
  ncclUniqueId id;
  ncclComm_t world = nullptr;
  MUST(FUNCTION(nccl, ncclGetUniqueId)(&id));
  MUST(FUNCTION(nccl, ncclCommInitRank)(&world, 1, id, 0));
  CUdeviceptr memory = 0;
  MUST(cuMemAlloc(&memory, 4096 * sizeof(float)));
  auto* const numbers = reinterpret_cast<void*>(memory);
  MUST(FUNCTION(nccl, ncclAllReduce)(numbers, numbers, 4096, ncclFloat, ncclSum, world,
                                     reinterpret_cast<cudaStream_t>(stream)));
  MUST(FUNCTION(nccl, ncclCommDestroy)(world));
  MUST(FUNCTION(blas, cublasDestroy_v2)(handle));
  return end_program(stream);
}
