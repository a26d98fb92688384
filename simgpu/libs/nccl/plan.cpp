#include "simgpu/libs/nccl/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/nccl/cost.h"
#include "simgpu/libs/nccl/execution.h"

// Any other driver does not have it, and no kernel of ours would move a byte there.
extern "C" __attribute__((weak)) int simgpu_next_kernel(const simgpu::KernelWork* work);

namespace simlibs {
namespace {

constexpr uint64_t kBytesPerChannel = 128 * 1024;
constexpr unsigned kMostChannels = 16;

// The kernel of the first operation does the whole group. Kernels exist for the sum alone; whole numbers are added as
// unsigned ones.
std::string kernel_name(const Operation& first) {
  const auto reducing = [&](const char* what) {
    std::string type = word_of(first.type);
    if (type[0] == 'i') type[0] = 'u';
    return std::string(what) + "_Sum_" + type + "_RING_LL";
  };
  std::string name = "ncclDevKernel_";
  switch (first.kind) {
    case Kind::AllReduce:
      name += reducing("AllReduce");
      break;
    case Kind::Reduce:
      name += reducing("Reduce");
      break;
    case Kind::ReduceScatter:
      name += reducing("ReduceScatter");
      break;
    case Kind::AllGather:
      name += "AllGather_RING_LL";
      break;
    case Kind::Broadcast:
      name += "Broadcast_RING_LL";
      break;
    default:
      name += "SendRecv";
  }
  return "_Z" + std::to_string(name.size()) + name + "24ncclDevKernelArgsStorageILm4096EE";
}

// More channels for more bytes.
unsigned channels(const ncclComm& communicator, const std::vector<Operation>& operations) {
  uint64_t bytes = 0;
  for (const Operation& operation : operations) bytes += operation.all_bytes(communicator.ranks);
  return static_cast<unsigned>(
      std::clamp<uint64_t>((bytes + kBytesPerChannel - 1) / kBytesPerChannel, 1, kMostChannels));
}

// The program's current context is what it was, whichever device the communicator is on.
class InContext {
 public:
  explicit InContext(CUcontext context) {
    cuCtxGetCurrent(&before_);
    if (before_ != context) changed_ = cuCtxSetCurrent(context) == CUDA_SUCCESS;
  }
  ~InContext() {
    if (changed_) cuCtxSetCurrent(before_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

simgpu::KernelWork work_of(Plan* plan) {
  simgpu::KernelWork work{};
  work.plan = plan;
  work.begin = [](void* own, const simgpu::KernelStart* start) -> void* {
    return new Execution(*static_cast<Plan*>(own), *start);
  };
  work.poll = [](void* own, uint64_t* end) {
    auto* execution = static_cast<Execution*>(own);
    const bool ended = execution->ended(end);
    if (ended) delete execution;
    return ended;
  };
  work.release = [](void* own) { delete static_cast<Plan*>(own); };
  return work;
}

}  // namespace

ncclResult_t launch_plan(const Communicator& communicator, CUstream stream, std::vector<Operation> operations) {
  if (!simgpu_next_kernel) return ncclUnhandledCudaError;
  const InContext in_context(communicator->context);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS) return ncclUnhandledCudaError;
  const std::string name = kernel_name(operations.front());
  LaunchShape shape;
  shape.grid.x = channels(*communicator, operations);
  shape.block.x = 640;
  const KernelArguments arguments{operations.front().send,
                                  nullptr,
                                  operations.front().receive,
                                  1,
                                  static_cast<long long>(operations.front().count),
                                  1};
  const std::lock_guard lock(communicator->mutex);  // tickets in the order of the launches
  auto* plan = new Plan{communicator, std::move(operations), {}};
  const bool at_once = capture == CU_STREAM_CAPTURE_STATUS_NONE;
  if (at_once) {
    plan->ticket = communicator->tickets;
    communicator->pending.fetch_add(1, std::memory_order_acq_rel);
  }
  const simgpu::KernelWork work = work_of(plan);
  simgpu_next_kernel(&work);
  if (launch(name.c_str(), stream, shape, arguments) != CUDA_SUCCESS) {
    simgpu_next_kernel(nullptr);
    if (at_once) communicator->pending.fetch_sub(1, std::memory_order_acq_rel);
    return ncclUnhandledCudaError;
  }
  if (at_once) ++communicator->tickets;
  return ncclSuccess;
}

uint64_t estimate(const ncclComm& communicator, const std::vector<Operation>& operations, uint64_t bytes_per_second) {
  uint64_t time = kKernelStart;
  for (const Operation& operation : operations) {
    time +=
        operation.to_one_peer()
            ? kHop + transfer_time(static_cast<double>(operation.count_bytes()), bytes_per_second)
            : ring_time(operation.kind, operation.all_bytes(communicator.ranks), communicator.ranks, bytes_per_second);
  }
  return time;
}

}  // namespace simlibs
