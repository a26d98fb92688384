// cuRAND: generators, and one kernel for each request, after one that seeds.
#include <cuda.h>

#include <algorithm>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/curand/types.h"

struct curandGenerator_st {
  static constexpr unsigned kLives = 0x726e6467;
  unsigned lives = kLives;  // one that was destroyed is not taken
  CUstream stream = nullptr;
  bool seeded = false;
};

#define CURAND_ENTRY(name, parameters) extern "C" __attribute__((visibility("default"))) curandStatus_t name parameters

namespace {

using namespace simlibs;

bool lives(curandGenerator_t generator) { return generator && generator->lives == curandGenerator_st::kLives; }

curandStatus_t launch_one(curandGenerator_t generator, const char* kernel, void* out, size_t count) {
  LaunchShape shape;
  shape.grid.x = std::clamp(tiles(static_cast<long long>(count), 256), 1u,
                            4u * static_cast<unsigned>(std::max(multiprocessors(), 1)));
  shape.block.x = 256;
  KernelArguments arguments;
  arguments.a = arguments.b = out;
  arguments.c = out;
  arguments.n = static_cast<long long>(count);
  return launch(kernel, generator->stream, shape, arguments) == CUDA_SUCCESS ? CURAND_STATUS_SUCCESS
                                                                             : CURAND_STATUS_LAUNCH_FAILURE;
}

// `step`: how many numbers a thread makes at once.
curandStatus_t generate(curandGenerator_t generator, const char* kernel, void* out, size_t count, size_t step = 1) {
  if (!lives(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (!out) return CURAND_STATUS_OUT_OF_RANGE;
  if (count % step != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (count == 0) return CURAND_STATUS_SUCCESS;
  if (enter_context() != CUDA_SUCCESS) return CURAND_STATUS_INITIALIZATION_FAILED;
  if (!generator->seeded) {
    if (const curandStatus_t seeded =
            launch_one(generator, "_Z20generate_seed_pseudoIfEvN7simlibs15KernelArgumentsE", out, 4096);
        seeded != CURAND_STATUS_SUCCESS) {
      return seeded;
    }
    generator->seeded = true;
  }
  return launch_one(generator, kernel, out, count);
}

curandStatus_t reset(curandGenerator_t generator) {
  if (!lives(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  generator->seeded = false;
  return CURAND_STATUS_SUCCESS;
}

}  // namespace

CURAND_ENTRY(curandCreateGenerator, (curandGenerator_t * out, curandRngType_t)) {
  if (!out) return CURAND_STATUS_OUT_OF_RANGE;
  if (enter_context() != CUDA_SUCCESS) return CURAND_STATUS_INITIALIZATION_FAILED;
  *out = new curandGenerator_st;
  return CURAND_STATUS_SUCCESS;
}
CURAND_ENTRY(curandDestroyGenerator, (curandGenerator_t generator)) {
  if (!lives(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  generator->lives = 0;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
CURAND_ENTRY(curandGetVersion, (int* version)) {
  if (!version) return CURAND_STATUS_OUT_OF_RANGE;
  *version = 10400;
  return CURAND_STATUS_SUCCESS;
}
CURAND_ENTRY(curandGetProperty, (libraryPropertyType type, int* value)) {
  if (!value) return CURAND_STATUS_OUT_OF_RANGE;
  *value = type == MAJOR_VERSION ? 10 : type == MINOR_VERSION ? 4 : 0;
  return CURAND_STATUS_SUCCESS;
}
CURAND_ENTRY(curandSetStream, (curandGenerator_t generator, cudaStream_t stream)) {
  if (!lives(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = reinterpret_cast<CUstream>(stream);
  return CURAND_STATUS_SUCCESS;
}
CURAND_ENTRY(curandSetPseudoRandomGeneratorSeed, (curandGenerator_t generator, unsigned long long)) {
  return reset(generator);
}
CURAND_ENTRY(curandSetGeneratorOffset, (curandGenerator_t generator, unsigned long long)) { return reset(generator); }
CURAND_ENTRY(curandSetGeneratorOrdering, (curandGenerator_t generator, curandOrdering_t)) { return reset(generator); }
CURAND_ENTRY(curandSetQuasiRandomGeneratorDimensions, (curandGenerator_t generator, unsigned)) {
  return reset(generator);
}

CURAND_ENTRY(curandGenerate, (curandGenerator_t generator, unsigned* out, size_t count)) {
  return generate(generator, "_Z20gen_sequenced_pseudoIjEvN7simlibs15KernelArgumentsE", out, count);
}
CURAND_ENTRY(curandGenerateUniform, (curandGenerator_t generator, float* out, size_t count)) {
  return generate(generator, "_Z20gen_sequenced_pseudoIfEvN7simlibs15KernelArgumentsE", out, count);
}
CURAND_ENTRY(curandGenerateUniformDouble, (curandGenerator_t generator, double* out, size_t count)) {
  return generate(generator, "_Z20gen_sequenced_pseudoIdEvN7simlibs15KernelArgumentsE", out, count);
}
// Normal numbers come in pairs.
CURAND_ENTRY(curandGenerateNormal, (curandGenerator_t generator, float* out, size_t count, float, float)) {
  return generate(generator, "_Z17gen_normal_pseudoIfEvN7simlibs15KernelArgumentsE", out, count, 2);
}
CURAND_ENTRY(curandGenerateNormalDouble, (curandGenerator_t generator, double* out, size_t count, double, double)) {
  return generate(generator, "_Z17gen_normal_pseudoIdEvN7simlibs15KernelArgumentsE", out, count, 2);
}
CURAND_ENTRY(curandGenerateLogNormal, (curandGenerator_t generator, float* out, size_t count, float, float)) {
  return generate(generator, "_Z17gen_normal_pseudoIfEvN7simlibs15KernelArgumentsE", out, count, 2);
}
CURAND_ENTRY(curandGenerateLogNormalDouble, (curandGenerator_t generator, double* out, size_t count, double, double)) {
  return generate(generator, "_Z17gen_normal_pseudoIdEvN7simlibs15KernelArgumentsE", out, count, 2);
}
CURAND_ENTRY(curandGeneratePoisson, (curandGenerator_t generator, unsigned* out, size_t count, double)) {
  return generate(generator, "_Z20gen_sequenced_pseudoIjEvN7simlibs15KernelArgumentsE", out, count);
}
