// cuFFT: plans, and one kernel a dimension for each execution.
#include <cuda.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/common/version.h"
#include "simgpu/libs/cufft/types.h"

#define CUFFT_ENTRY(name, parameters) extern "C" __attribute__((visibility("default"))) cufftResult name parameters

namespace simlibs {
namespace {

enum class Precision { Half, Single, Double };

struct Shape {
  std::array<long long, 3> n{1, 1, 1};
  int rank = 1;
  long long batch = 1;
  Precision precision = Precision::Single;
  int type = 0;  // cufftType; 0: of cufftXtMakePlanMany

  long long elements() const { return n[0] * n[1] * n[2] * batch; }
  // Out of place, between two passes.
  size_t work_bytes() const {
    const size_t complex_bytes = precision == Precision::Half ? 4 : precision == Precision::Single ? 8 : 16;
    const bool one_pass = rank == 1 && n[0] <= 4096;
    return one_pass ? 0 : static_cast<size_t>(elements()) * complex_bytes;
  }
};

struct Plan {
  Shape shape;
  bool made = false, allocates = true;
  CUstream stream = nullptr;
  CUdeviceptr own_work = 0;
};

struct Plans {
  std::mutex mutex;
  std::map<cufftHandle, Plan> all;
  cufftHandle next = 1;
};
// Never destroyed: programs destroy plans in exit handlers.
Plans& plans() {
  static Plans* const own = new Plans;
  return *own;
}

template <typename Use>
cufftResult with_plan(cufftHandle handle, Use&& use) {
  Plans& own = plans();
  const std::lock_guard lock(own.mutex);
  const auto at = own.all.find(handle);
  return at == own.all.end() ? CUFFT_INVALID_PLAN : use(at->second);
}

// CUFFT_SUCCESS, or what is wrong with it.
template <typename Number>
cufftResult shape_of(int rank, const Number* n, long long batch, int type, Shape* shape) {
  if (!n) return CUFFT_INVALID_VALUE;
  if (rank < 1 || rank > 3 || batch < 1) return CUFFT_INVALID_SIZE;
  shape->rank = rank;
  shape->batch = batch;
  shape->type = type;
  for (int i = 0; i < rank; ++i) {
    if (n[i] < 1) return CUFFT_INVALID_SIZE;
    shape->n[static_cast<size_t>(i)] = n[i];
  }
  switch (type) {
    case CUFFT_C2C:
    case CUFFT_R2C:
    case CUFFT_C2R:
      shape->precision = Precision::Single;
      return CUFFT_SUCCESS;
    case CUFFT_Z2Z:
    case CUFFT_D2Z:
    case CUFFT_Z2D:
      shape->precision = Precision::Double;
      return CUFFT_SUCCESS;
    default:
      return CUFFT_INVALID_TYPE;
  }
}

bool power_of_two(long long n) { return (n & (n - 1)) == 0; }

template <typename Number>
cufftResult shape_of_typed(int rank, const Number* n, long long batch, cudaDataType in, cudaDataType out,
                           cudaDataType execution, Shape* shape) {
  const cufftResult result = shape_of(rank, n, batch, execution == CUDA_C_64F ? CUFFT_Z2Z : CUFFT_C2C, shape);
  if (result != CUFFT_SUCCESS) return result;
  shape->type = 0;
  const auto is = [&](cudaDataType real, cudaDataType complex) {
    return execution == complex && (in == real || in == complex) && (out == real || out == complex) &&
           (in == complex || out == complex);
  };
  if (is(CUDA_R_32F, CUDA_C_32F) || is(CUDA_R_64F, CUDA_C_64F)) return CUFFT_SUCCESS;
  shape->precision = Precision::Half;
  if (!is(CUDA_R_16F, CUDA_C_16F)) return CUFFT_INVALID_TYPE;
  return std::all_of(shape->n.begin(), shape->n.end(), power_of_two) ? CUFFT_SUCCESS : CUFFT_NOT_SUPPORTED;
}

cufftResult make(cufftHandle handle, cufftResult judged, const Shape& shape, size_t* work) {
  if (judged != CUFFT_SUCCESS) return judged;
  return with_plan(handle, [&](Plan& plan) {
    if (plan.made) return CUFFT_INVALID_PLAN;
    const size_t bytes = shape.work_bytes();
    if (work) *work = bytes;
    if (plan.allocates && bytes > 0 &&
        (enter_context() != CUDA_SUCCESS || cuMemAlloc(&plan.own_work, bytes) != CUDA_SUCCESS)) {
      return CUFFT_ALLOC_FAILED;
    }
    plan.shape = shape;
    plan.made = true;
    return CUFFT_SUCCESS;
  });
}

cufftResult tell_size(cufftResult judged, const Shape& shape, size_t* work) {
  if (judged != CUFFT_SUCCESS) return judged;
  if (!work) return CUFFT_INVALID_VALUE;
  *work = shape.work_bytes();
  return CUFFT_SUCCESS;
}

// The plain ones make their handle.
cufftResult create(cufftHandle* out) {
  if (!out) return CUFFT_INVALID_VALUE;
  Plans& own = plans();
  const std::lock_guard lock(own.mutex);
  *out = own.next++;
  own.all.emplace(*out, Plan{});
  return CUFFT_SUCCESS;
}
cufftResult create_made(cufftHandle* out, cufftResult judged, const Shape& shape) {
  if (judged != CUFFT_SUCCESS) return judged;
  const cufftResult created = create(out);
  return created == CUFFT_SUCCESS ? make(*out, judged, shape, nullptr) : created;
}

std::string kernel_name(long long n, Precision precision) {
  const bool vector = power_of_two(n) && n >= 16 && n <= 4096;
  const std::string real = precision == Precision::Half ? "6__half" : precision == Precision::Single ? "f" : "d";
  const std::string name = vector ? "10vector_fftILj" + std::to_string(n) : "11regular_fftILj3";
  return "_Z" + name + "ELj8ELj4EL9padding_t1EL9twiddle_t0EL20loadstore_modifier_t2EL8layout_t0Ej" + real +
         "Ev18kernel_arguments_tIT6_E";
}

cufftResult execute(cufftHandle handle, int type, const void* in, void* out) {
  Plan plan;
  const cufftResult found = with_plan(handle, [&](const Plan& own) {
    plan = own;
    return CUFFT_SUCCESS;
  });
  if (found != CUFFT_SUCCESS || !plan.made) return CUFFT_INVALID_PLAN;
  if (type != 0 && plan.shape.type != 0 && type != plan.shape.type) return CUFFT_INVALID_TYPE;
  if (!in || !out) return CUFFT_INVALID_VALUE;
  if (enter_context() != CUDA_SUCCESS) return CUFFT_SETUP_FAILED;
  const Shape& shape = plan.shape;
  for (int i = shape.rank - 1; i >= 0; --i) {
    const long long n = shape.n[static_cast<size_t>(i)];
    if (n == 1 && shape.rank > 1) continue;
    // Eight elements a thread, several short lines a block.
    const long long threads = std::clamp<long long>((n + 7) / 8, 1, 512), lines = std::max<long long>(1, 128 / threads);
    LaunchShape launched;
    launched.grid.x = tiles(shape.elements() / n, lines);
    launched.block.x = static_cast<unsigned>(threads * lines);
    KernelArguments arguments;
    arguments.a = in;
    arguments.c = out;
    arguments.n = n;
    if (launch(kernel_name(n, shape.precision).c_str(), plan.stream, launched, arguments) != CUDA_SUCCESS)
      return CUFFT_EXEC_FAILED;
  }
  return CUFFT_SUCCESS;
}

}  // namespace
}  // namespace simlibs

using namespace simlibs;

#define GT_JUDGED(rank, n, batch, type) \
  Shape shape;                          \
  const cufftResult judged = shape_of(rank, n, batch, type, &shape)

CUFFT_ENTRY(cufftPlan1d, (cufftHandle * plan, int nx, cufftType type, int batch)) {
  GT_JUDGED(1, &nx, batch, type);
  return create_made(plan, judged, shape);
}
CUFFT_ENTRY(cufftPlan2d, (cufftHandle * plan, int nx, int ny, cufftType type)) {
  const int n[] = {nx, ny};
  GT_JUDGED(2, n, 1, type);
  return create_made(plan, judged, shape);
}
CUFFT_ENTRY(cufftPlan3d, (cufftHandle * plan, int nx, int ny, int nz, cufftType type)) {
  const int n[] = {nx, ny, nz};
  GT_JUDGED(3, n, 1, type);
  return create_made(plan, judged, shape);
}
CUFFT_ENTRY(cufftPlanMany,
            (cufftHandle * plan, int rank, int* n, int*, int, int, int*, int, int, cufftType type, int batch)) {
  GT_JUDGED(rank, n, batch, type);
  return create_made(plan, judged, shape);
}
CUFFT_ENTRY(cufftMakePlan1d, (cufftHandle plan, int nx, cufftType type, int batch, size_t* work)) {
  GT_JUDGED(1, &nx, batch, type);
  return make(plan, judged, shape, work);
}
CUFFT_ENTRY(cufftMakePlan2d, (cufftHandle plan, int nx, int ny, cufftType type, size_t* work)) {
  const int n[] = {nx, ny};
  GT_JUDGED(2, n, 1, type);
  return make(plan, judged, shape, work);
}
CUFFT_ENTRY(cufftMakePlan3d, (cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t* work)) {
  const int n[] = {nx, ny, nz};
  GT_JUDGED(3, n, 1, type);
  return make(plan, judged, shape, work);
}
CUFFT_ENTRY(cufftMakePlanMany, (cufftHandle plan, int rank, int* n, int*, int, int, int*, int, int, cufftType type,
                                int batch, size_t* work)) {
  GT_JUDGED(rank, n, batch, type);
  return make(plan, judged, shape, work);
}
CUFFT_ENTRY(cufftMakePlanMany64, (cufftHandle plan, int rank, long long* n, long long*, long long, long long,
                                  long long*, long long, long long, cufftType type, long long batch, size_t* work)) {
  GT_JUDGED(rank, n, batch, type);
  return make(plan, judged, shape, work);
}
CUFFT_ENTRY(cufftXtMakePlanMany,
            (cufftHandle plan, int rank, long long* n, long long*, long long, long long, cudaDataType in, long long*,
             long long, long long, cudaDataType out, long long batch, size_t* work, cudaDataType execution)) {
  Shape shape;
  const cufftResult judged = shape_of_typed(rank, n, batch, in, out, execution, &shape);
  return make(plan, judged, shape, work);
}

CUFFT_ENTRY(cufftEstimate1d, (int nx, cufftType type, int batch, size_t* work)) {
  GT_JUDGED(1, &nx, batch, type);
  return tell_size(judged, shape, work);
}
CUFFT_ENTRY(cufftEstimate2d, (int nx, int ny, cufftType type, size_t* work)) {
  const int n[] = {nx, ny};
  GT_JUDGED(2, n, 1, type);
  return tell_size(judged, shape, work);
}
CUFFT_ENTRY(cufftEstimate3d, (int nx, int ny, int nz, cufftType type, size_t* work)) {
  const int n[] = {nx, ny, nz};
  GT_JUDGED(3, n, 1, type);
  return tell_size(judged, shape, work);
}
CUFFT_ENTRY(cufftEstimateMany,
            (int rank, int* n, int*, int, int, int*, int, int, cufftType type, int batch, size_t* work)) {
  GT_JUDGED(rank, n, batch, type);
  return tell_size(judged, shape, work);
}
CUFFT_ENTRY(cufftGetSize1d, (cufftHandle, int nx, cufftType type, int batch, size_t* work)) {
  return cufftEstimate1d(nx, type, batch, work);
}
CUFFT_ENTRY(cufftGetSize2d, (cufftHandle, int nx, int ny, cufftType type, size_t* work)) {
  return cufftEstimate2d(nx, ny, type, work);
}
CUFFT_ENTRY(cufftGetSize3d, (cufftHandle, int nx, int ny, int nz, cufftType type, size_t* work)) {
  return cufftEstimate3d(nx, ny, nz, type, work);
}
CUFFT_ENTRY(cufftGetSizeMany,
            (cufftHandle, int rank, int* n, int*, int, int, int*, int, int, cufftType type, int batch, size_t* work)) {
  GT_JUDGED(rank, n, batch, type);
  return tell_size(judged, shape, work);
}
CUFFT_ENTRY(cufftGetSizeMany64, (cufftHandle, int rank, long long* n, long long*, long long, long long, long long*,
                                 long long, long long, cufftType type, long long batch, size_t* work)) {
  GT_JUDGED(rank, n, batch, type);
  return tell_size(judged, shape, work);
}
CUFFT_ENTRY(cufftXtGetSizeMany,
            (cufftHandle, int rank, long long* n, long long*, long long, long long, cudaDataType in, long long*,
             long long, long long, cudaDataType out, long long batch, size_t* work, cudaDataType execution)) {
  Shape shape;
  const cufftResult judged = shape_of_typed(rank, n, batch, in, out, execution, &shape);
  return tell_size(judged, shape, work);
}
CUFFT_ENTRY(cufftGetSize, (cufftHandle handle, size_t* work)) {
  return with_plan(handle, [&](const Plan& plan) {
    return plan.made ? tell_size(CUFFT_SUCCESS, plan.shape, work) : CUFFT_INVALID_PLAN;
  });
}

CUFFT_ENTRY(cufftCreate, (cufftHandle * plan)) { return create(plan); }
CUFFT_ENTRY(cufftDestroy, (cufftHandle handle)) {
  Plans& own = plans();
  const std::lock_guard lock(own.mutex);
  const auto at = own.all.find(handle);
  if (at == own.all.end()) return CUFFT_INVALID_PLAN;
  if (at->second.own_work) cuMemFree(at->second.own_work);
  own.all.erase(at);
  return CUFFT_SUCCESS;
}
CUFFT_ENTRY(cufftSetStream, (cufftHandle handle, cudaStream_t stream)) {
  return with_plan(handle, [&](Plan& plan) {
    plan.stream = reinterpret_cast<CUstream>(stream);
    return CUFFT_SUCCESS;
  });
}
// Before the plan is made.
CUFFT_ENTRY(cufftSetAutoAllocation, (cufftHandle handle, int allocates)) {
  return with_plan(handle, [&](Plan& plan) {
    plan.allocates = allocates != 0;
    return CUFFT_SUCCESS;
  });
}
CUFFT_ENTRY(cufftSetWorkArea, (cufftHandle handle, void*)) {
  return with_plan(handle, [](Plan& plan) {
    if (plan.own_work) cuMemFree(plan.own_work);
    plan.own_work = 0;
    return CUFFT_SUCCESS;
  });
}

CUFFT_ENTRY(cufftExecC2C, (cufftHandle plan, cufftComplex* in, cufftComplex* out, int)) {
  return execute(plan, CUFFT_C2C, in, out);
}
CUFFT_ENTRY(cufftExecR2C, (cufftHandle plan, cufftReal* in, cufftComplex* out)) {
  return execute(plan, CUFFT_R2C, in, out);
}
CUFFT_ENTRY(cufftExecC2R, (cufftHandle plan, cufftComplex* in, cufftReal* out)) {
  return execute(plan, CUFFT_C2R, in, out);
}
CUFFT_ENTRY(cufftExecZ2Z, (cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int)) {
  return execute(plan, CUFFT_Z2Z, in, out);
}
CUFFT_ENTRY(cufftExecD2Z, (cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out)) {
  return execute(plan, CUFFT_D2Z, in, out);
}
CUFFT_ENTRY(cufftExecZ2D, (cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out)) {
  return execute(plan, CUFFT_Z2D, in, out);
}
CUFFT_ENTRY(cufftXtExec, (cufftHandle plan, void* in, void* out, int)) { return execute(plan, 0, in, out); }

CUFFT_ENTRY(cufftGetVersion, (int* version)) {
  if (!version) return CUFFT_INVALID_VALUE;
  *version = soname_major() == 11 ? 11400 : 12200;
  return CUFFT_SUCCESS;
}
CUFFT_ENTRY(cufftGetProperty, (libraryPropertyType type, int* value)) {
  int version = 0;
  if (!value || cufftGetVersion(&version) != CUFFT_SUCCESS) return CUFFT_INVALID_VALUE;
  *value = type == MAJOR_VERSION ? version / 1000 : type == MINOR_VERSION ? version / 100 % 10 : version % 100;
  return CUFFT_SUCCESS;
}
