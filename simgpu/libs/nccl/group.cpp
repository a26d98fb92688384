#include "simgpu/libs/nccl/group.h"

#include <algorithm>
#include <utility>

#include "simgpu/libs/nccl/plan.h"

namespace simlibs {
namespace {

struct Launch {
  Communicator communicator;
  CUstream stream = nullptr;
  std::vector<Operation> operations;
};
struct Group {
  int depth = 0;
  std::vector<Communicator> not_ready;
  std::vector<Launch> launches;
  ncclResult_t error = ncclSuccess;
};
thread_local Group group;

constexpr uint64_t kAssumedBandwidth = uint64_t{50} << 30;  // of a link, where no kernel runs to ask for it

ncclResult_t first_of(ncclResult_t earlier, ncclResult_t later) {
  return earlier != ncclSuccess && earlier != ncclInProgress ? earlier : later != ncclSuccess ? later : earlier;
}

// All of them are announced by now, so that ranks of one thread find each other.
ncclResult_t make_ready(const std::vector<Communicator>& communicators) {
  ncclResult_t result = ncclSuccess;
  for (const Communicator& communicator : communicators) {
    result = first_of(result, communicator->blocking ? wait_until_ready(*communicator) : advance(*communicator));
  }
  return result;
}

bool rank_exists(const ncclComm& communicator, const Operation& operation) {
  return operation.root >= 0 && operation.root < communicator.ranks;
}

ncclResult_t check(const ncclComm& communicator, const Operation& operation) {
  if (size_of(operation.type) == 0 || !rank_exists(communicator, operation)) return ncclInvalidArgument;
  const bool at_root = operation.root == communicator.rank;
  const bool reads = operation.kind == Kind::Receive ? false : operation.kind != Kind::Broadcast || at_root;
  const bool writes = operation.kind == Kind::Send ? false : operation.kind != Kind::Reduce || at_root;
  return (reads && !operation.send) || (writes && !operation.receive) ? ncclInvalidArgument : ncclSuccess;
}

}  // namespace

void group_begin() { ++group.depth; }

ncclResult_t group_end() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  const Group done = std::exchange(group, Group{});
  ncclResult_t result = first_of(done.error, make_ready(done.not_ready));
  if (result != ncclSuccess && result != ncclInProgress) return result;
  for (const Launch& launch : done.launches) {
    if (const ncclResult_t launched = launch_plan(launch.communicator, launch.stream, launch.operations);
        launched != ncclSuccess)
      return launched;
  }
  return result;
}

ncclResult_t group_estimate(uint64_t* nanos) {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  const Group done = std::exchange(group, Group{});
  *nanos = 0;
  for (const Launch& launch : done.launches)
    *nanos += estimate(*launch.communicator, launch.operations, kAssumedBandwidth);
  return first_of(done.error, make_ready(done.not_ready));
}

ncclResult_t remember(ncclResult_t result) {
  if (group.depth > 0) group.error = first_of(group.error, result);
  return result;
}

ncclResult_t get_ready(const Communicator& communicator) {
  if (group.depth == 0) return make_ready({communicator});
  group.not_ready.push_back(communicator);
  return ncclSuccess;
}

ncclResult_t enqueue(ncclComm_t handle, cudaStream_t runtime_stream, const Operation& operation) {
  const Communicator communicator = communicator_of(handle);
  if (!communicator) return remember(ncclInvalidArgument);
  if (const ncclResult_t ready = wait_until_ready(*communicator); ready != ncclSuccess) return remember(ready);
  if (operation.count == 0) return ncclSuccess;
  if (const ncclResult_t result = check(*communicator, operation); result != ncclSuccess) return remember(result);
  auto* stream = reinterpret_cast<CUstream>(runtime_stream);
  if (group.depth == 0) return launch_plan(communicator, stream, {operation});
  const auto known = std::find_if(group.launches.begin(), group.launches.end(), [&](const Launch& launch) {
    return launch.communicator == communicator && launch.stream == stream;
  });
  if (known != group.launches.end())
    known->operations.push_back(operation);
  else
    group.launches.push_back({communicator, stream, {operation}});
  return ncclSuccess;
}

}  // namespace simlibs
