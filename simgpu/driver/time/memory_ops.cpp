// cuStreamWaitValue, cuStreamWriteValue, cuStreamBatchMemOp.
#include "simgpu/driver/time/memory_ops.h"

#include <atomic>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

template <class T>
bool comes(CUdeviceptr address, T wanted, unsigned flags) {
  const T value = std::atomic_ref<T>(*reinterpret_cast<T*>(address)).load(std::memory_order_acquire);
  using Signed = std::make_signed_t<T>;
  switch (flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<Signed>(value - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return value == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (value & wanted) != 0;
    default:
      return static_cast<T>(~(value | wanted)) != 0;
  }
}

size_t bytes_of(const CUstreamBatchMemOpParams& op) {
  return op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;
}

}  // namespace

bool waits(const CUstreamBatchMemOpParams& op) {
  return op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

CUresult check_memory_op(const CUstreamBatchMemOpParams& op) {
  switch (op.operation) {
    case CU_STREAM_MEM_OP_BARRIER:
      return op.memoryBarrier.flags > 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return CUDA_ERROR_NOT_SUPPORTED;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      if ((op.waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
      if (op.waitValue.flags > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      if (op.writeValue.flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return CUDA_ERROR_INVALID_VALUE;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  const CUdeviceptr address = op.waitValue.address;  // in the same place in both kinds
  if (address % bytes_of(op) != 0 || !find_range(address, bytes_of(op))) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

bool value_has_come(const CUstreamBatchMemOpParams& op) {
  const auto& wait = op.waitValue;
  return bytes_of(op) == 8 ? comes<uint64_t>(wait.address, wait.value64, wait.flags)
                           : comes<uint32_t>(wait.address, wait.value, wait.flags);
}

void write_value(const CUstreamBatchMemOpParams& op) {
  const auto& write = op.writeValue;
  if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) {
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(write.address))
        .store(write.value64, std::memory_order_release);
  } else if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
    std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(write.address))
        .store(write.value, std::memory_order_release);
  }
}

namespace {

// Writes happen when their time has come, not when they are submitted: hosts poll such values.
void submit_one(Call& call, Stream& stream, const CUstreamBatchMemOpParams& op) {
  if (waits(op)) {
    if (!deferring(stream) && value_has_come(op)) return;
    wait_for_condition(call, stream, [op](Nanos) { return value_has_come(op); });
    return;
  }
  if (op.operation == CU_STREAM_MEM_OP_BARRIER) return;
  const Nanos submitted = call.begin() + knobs().launch_latency;
  defer(stream, Work{submitted,
                     {},
                     {},
                     [op](Nanos ready) {
                       write_value(op);
                       return ready;
                     },
                     true});
}

CUresult submit(Call& call, CUstream handle, unsigned count, const CUstreamBatchMemOpParams* ops) {
  constexpr unsigned kMost = 256;
  if (ops == nullptr || count == 0 || count > kMost) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  for (unsigned i = 0; i < count; ++i) {
    if (CUresult result = check_memory_op(ops[i]); result != CUDA_SUCCESS) return result;
  }
  if (capturing(*stream)) return capture_memory_ops(call, *stream, count, ops);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  for (unsigned i = 0; i < count; ++i) submit_one(call, *stream, ops[i]);
  return CUDA_SUCCESS;
}

CUresult submit_wait(Call& call, CUstream stream, CUdeviceptr address, uint64_t value, bool wide, unsigned flags) {
  CUstreamBatchMemOpParams op{};
  op.operation = wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = address;
  op.waitValue.value64 = value;
  op.waitValue.flags = flags;
  return submit(call, stream, 1, &op);
}

CUresult submit_write(Call& call, CUstream stream, CUdeviceptr address, uint64_t value, bool wide, unsigned flags) {
  CUstreamBatchMemOpParams op{};
  op.operation = wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op.writeValue.address = address;
  op.writeValue.value64 = value;
  op.writeValue.flags = flags;
  return submit(call, stream, 1, &op);
}

}  // namespace

}  // namespace simgpu

using namespace simgpu;

SIM_API_PTSZ(cuStreamWaitValue32_v2, "cuStreamWaitValue32", (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f),
             (s, a, v, f)) {
  return submit_wait(call, s, a, v, false, f);
}
SIM_API_PTSZ(cuStreamWaitValue64_v2, "cuStreamWaitValue64", (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f),
             (s, a, v, f)) {
  return submit_wait(call, s, a, v, true, f);
}
SIM_API_PTSZ(cuStreamWriteValue32_v2, "cuStreamWriteValue32", (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f),
             (s, a, v, f)) {
  return submit_write(call, s, a, v, false, f);
}
SIM_API_PTSZ(cuStreamWriteValue64_v2, "cuStreamWriteValue64", (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f),
             (s, a, v, f)) {
  return submit_write(call, s, a, v, true, f);
}
SIM_API_PTSZ(cuStreamBatchMemOp_v2, "cuStreamBatchMemOp",
             (CUstream s, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags), (s, count, ops, flags)) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : submit(call, s, count, ops);
}

// The first version of these calls, same in all but name.
SIM_API_PTSZ(cuStreamWaitValue32, "cuStreamWaitValue32", (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f),
             (s, a, v, f)) {
  return submit_wait(call, s, a, v, false, f);
}
SIM_API_PTSZ(cuStreamWaitValue64, "cuStreamWaitValue64", (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f),
             (s, a, v, f)) {
  return submit_wait(call, s, a, v, true, f);
}
SIM_API_PTSZ(cuStreamWriteValue32, "cuStreamWriteValue32", (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f),
             (s, a, v, f)) {
  return submit_write(call, s, a, v, false, f);
}
SIM_API_PTSZ(cuStreamWriteValue64, "cuStreamWriteValue64", (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f),
             (s, a, v, f)) {
  return submit_write(call, s, a, v, true, f);
}
SIM_API_PTSZ(cuStreamBatchMemOp, "cuStreamBatchMemOp",
             (CUstream s, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags), (s, count, ops, flags)) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : submit(call, s, count, ops);
}
