// cuTensorMap*: descriptions of tensors for bulk copies by kernels. Opaque by contract; ours hold what they were made
// from.
#include <cstring>

#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/handle.h"

namespace {

using simgpu::object_tag;

constexpr uint32_t kHighestRank = 5;
constexpr uint64_t kTag = object_tag("sgTENSOR");

struct Content {
  uint64_t tag;
  uint64_t address;
  uint32_t data_type;
  uint32_t rank;
  uint64_t dims[kHighestRank];
  uint64_t strides[kHighestRank];
};
static_assert(sizeof(Content) <= sizeof(CUtensorMap));

template <class T>
bool aligned(const T* p, uintptr_t to) {
  return p != nullptr && reinterpret_cast<uintptr_t>(p) % to == 0;
}

// What a tensor is, whichever way it is read.
struct Tensor {
  CUtensorMapDataType type;
  uint32_t rank;
  void* address;
  const cuuint64_t* dims;
  const cuuint64_t* strides;  // rank - 1 of them, in bytes
};

CUresult encode(CUtensorMap* map, const Tensor& tensor, uint32_t lowest_rank) {
  if (!aligned(map, 64) || !aligned(tensor.address, 16) || tensor.dims == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (tensor.rank < lowest_rank || tensor.rank > kHighestRank) return CUDA_ERROR_INVALID_VALUE;
  if (tensor.strides == nullptr && tensor.rank > 1) return CUDA_ERROR_INVALID_VALUE;
  Content content{};
  content.tag = kTag;
  content.address = reinterpret_cast<uint64_t>(tensor.address);
  content.data_type = tensor.type;
  content.rank = tensor.rank;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.dims[i] == 0 || tensor.dims[i] > uint64_t{1} << 32) return CUDA_ERROR_INVALID_VALUE;
    content.dims[i] = tensor.dims[i];
    if (i + 1 == tensor.rank) break;
    if (tensor.strides[i] % 16 != 0 || tensor.strides[i] >= uint64_t{1} << 40) return CUDA_ERROR_INVALID_VALUE;
    content.strides[i] = tensor.strides[i];
  }
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &content, sizeof content);
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",
        (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dims,
         const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* element_strides,
         CUtensorMapInterleave interleave, [[maybe_unused]] CUtensorMapSwizzle swizzle,
         [[maybe_unused]] CUtensorMapL2promotion promotion, [[maybe_unused]] CUtensorMapFloatOOBfill fill),
        (map, type, rank, address, dims, strides, box, element_strides, interleave, swizzle, promotion, fill)) {
  if (box == nullptr || element_strides == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < rank && i < kHighestRank; ++i) {
    const bool fits = box[i] > 0 && box[i] <= 256 && element_strides[i] > 0 && element_strides[i] <= 8;
    if (!fits) return CUDA_ERROR_INVALID_VALUE;
  }
  return encode(map, {type, rank, address, dims, strides}, interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 3);
}

SIM_API(cuTensorMapEncodeIm2col, "cuTensorMapEncodeIm2col",
        (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dims,
         const cuuint64_t* strides, const int* lower, const int* upper, cuuint32_t channels, cuuint32_t pixels,
         const cuuint32_t* element_strides, [[maybe_unused]] CUtensorMapInterleave interleave,
         [[maybe_unused]] CUtensorMapSwizzle swizzle, [[maybe_unused]] CUtensorMapL2promotion promotion,
         [[maybe_unused]] CUtensorMapFloatOOBfill fill),
        (map, type, rank, address, dims, strides, lower, upper, channels, pixels, element_strides, interleave, swizzle,
         promotion, fill)) {
  const bool fits =
      lower != nullptr && upper != nullptr && element_strides != nullptr && channels <= 256 && pixels <= 1024;
  return fits ? encode(map, {type, rank, address, dims, strides}, 3) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuTensorMapReplaceAddress, "cuTensorMapReplaceAddress", (CUtensorMap * map, void* address), (map, address)) {
  if (map == nullptr || !aligned(address, 16)) return CUDA_ERROR_INVALID_VALUE;
  Content content;
  std::memcpy(&content, map, sizeof content);
  if (content.tag != kTag) return CUDA_ERROR_INVALID_VALUE;
  content.address = reinterpret_cast<uint64_t>(address);
  std::memcpy(map, &content, sizeof content);
  return CUDA_SUCCESS;
}
