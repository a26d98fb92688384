// Communicators: how they are made, asked and given up.
#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/nccl/communicator.h"
#include "simgpu/libs/nccl/entry.h"
#include "simgpu/libs/nccl/group.h"

using namespace simlibs;

namespace {

MeetingId meeting_of(const ncclUniqueId& id) {
  MeetingId meeting;
  std::memcpy(&meeting, id.internal, sizeof meeting);
  return meeting;
}

bool config_is_valid(const ncclConfig_t* config) { return !config || config->magic == NCCL_API_MAGIC; }
bool blocks(const ncclConfig_t* config, bool otherwise) {
  return config && config->blocking != NCCL_CONFIG_UNDEF_INT ? config->blocking != 0 : otherwise;
}

// In a group all ranks of the thread are announced before any is waited for.
ncclResult_t make(ncclComm_t* out, const MeetingId& id, int rank, int ranks, const ncclConfig_t* config) {
  if (!out || !config_is_valid(config)) return remember(ncclInvalidArgument);
  Communicator made;
  const ncclResult_t result = begin_communicator(id, rank, ranks, blocks(config, true), &made);
  if (result != ncclSuccess) return remember(result);
  *out = register_communicator(made);
  return get_ready(made);
}

ncclResult_t split(ncclComm_t handle, int color, int key, std::vector<int> asked, ncclComm_t* out,
                   const ncclConfig_t* config) {
  const Communicator parent = communicator_of(handle);
  if (!parent || !out || !config_is_valid(config) || color < NCCL_SPLIT_NOCOLOR) return remember(ncclInvalidArgument);
  if (const ncclResult_t ready = wait_until_ready(*parent); ready != ncclSuccess) return remember(ready);
  if (asked.empty()) asked.resize(static_cast<size_t>(parent->ranks)), std::iota(asked.begin(), asked.end(), 0);
  Communicator made;
  const ncclResult_t result =
      begin_split(parent, color, key, std::move(asked), blocks(config, parent->blocking), &made);
  *out = nullptr;
  if (result != ncclSuccess) return remember(result);
  if (!made) return ncclSuccess;
  *out = register_communicator(made);
  return get_ready(made);
}

ncclResult_t give_up(ncclComm_t handle, RankState state) {
  const Communicator communicator = communicator_of(handle);
  if (!communicator) return ncclInvalidArgument;
  if (state == RankState::Aborted) communicator->aborted.store(true, std::memory_order_release);
  wait_until_idle(*communicator);
  if (communicator->meeting) communicator->meeting->leave(state);
  forget_communicator(handle);
  return ncclSuccess;
}

// Ready ones alone have an answer.
template <typename Value>
ncclResult_t tell(ncclComm_t handle, Value value, int* out) {
  const Communicator communicator = communicator_of(handle);
  if (!communicator || !out) return ncclInvalidArgument;
  if (const ncclResult_t ready = wait_until_ready(*communicator); ready != ncclSuccess) return ready;
  *out = value(*communicator);
  return ncclSuccess;
}

}  // namespace

NCCL_ENTRY(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * out)) {
  if (!out) return ncclInvalidArgument;
  MeetingId id;
  if (!Meeting::make(id)) return ncclSystemError;
  std::memset(out, 0, sizeof *out);
  std::memcpy(out->internal, &id, sizeof id);
  return ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclCommInitRank, (ncclComm_t * out, int ranks, ncclUniqueId id, int rank)) {
  return make(out, meeting_of(id), rank, ranks, nullptr);
}
NCCL_ENTRY(ncclResult_t, ncclCommInitRankConfig,
           (ncclComm_t * out, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config)) {
  return make(out, meeting_of(id), rank, ranks, config);
}
// One of the ids is enough to meet.
NCCL_ENTRY(ncclResult_t, ncclCommInitRankScalable,
           (ncclComm_t * out, int ranks, int rank, int count, ncclUniqueId* ids, ncclConfig_t* config)) {
  if (count < 1 || !ids) return remember(ncclInvalidArgument);
  return make(out, meeting_of(ids[0]), rank, ranks, config);
}
NCCL_ENTRY(ncclResult_t, ncclCommInitAll, (ncclComm_t * out, int count, const int* devices)) {
  if (!out || count < 1) return ncclInvalidArgument;
  MeetingId id;
  if (enter_context() != CUDA_SUCCESS) return ncclUnhandledCudaError;
  if (!Meeting::make(id)) return ncclSystemError;
  CUcontext before = nullptr;
  cuCtxGetCurrent(&before);
  group_begin();
  for (int i = 0; i < count; ++i) {
    CUcontext context = nullptr;
    CUdevice device = 0;
    const bool there = cuDeviceGet(&device, devices ? devices[i] : i) == CUDA_SUCCESS &&
                       cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
                       cuCtxSetCurrent(context) == CUDA_SUCCESS;
    if (there)
      make(out + i, id, i, count, nullptr);
    else
      remember(ncclInvalidArgument);
  }
  cuCtxSetCurrent(before);
  return group_end();
}

NCCL_ENTRY(ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* out, ncclConfig_t* config)) {
  return split(comm, color, key, {}, out, config);
}
NCCL_ENTRY(ncclResult_t, ncclCommShrink,
           (ncclComm_t comm, int* excluded, int count, ncclComm_t* out, ncclConfig_t* config, int flags)) {
  const Communicator parent = communicator_of(comm);
  if (!parent || count < 1 || !excluded) return ncclInvalidArgument;
  if (flags & NCCL_SHRINK_ABORT) parent->aborted.store(true, std::memory_order_release);
  std::vector<int> asked;
  for (int i = 0; i < parent->ranks; ++i) {
    if (std::find(excluded, excluded + count, i) == excluded + count) asked.push_back(i);
  }
  if (std::find(asked.begin(), asked.end(), parent->rank) == asked.end()) return ncclInvalidArgument;
  return split(comm, 0, parent->rank, std::move(asked), out, config);
}

NCCL_ENTRY(ncclResult_t, ncclCommFinalize, (ncclComm_t comm)) {
  const Communicator communicator = communicator_of(comm);
  if (!communicator) return ncclInvalidArgument;
  wait_until_idle(*communicator);
  return ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclCommDestroy, (ncclComm_t comm)) {
  return comm ? give_up(comm, RankState::Left) : ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclCommAbort, (ncclComm_t comm)) {
  return comm ? give_up(comm, RankState::Aborted) : ncclSuccess;
}

NCCL_ENTRY(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* error)) {
  const Communicator communicator = communicator_of(comm);
  if (!communicator || !error) return ncclInvalidArgument;
  *error = advance(*communicator);
  return ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count)) {
  return tell(
      comm, [](const ncclComm& own) { return own.ranks; }, count);
}
NCCL_ENTRY(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device)) {
  return tell(
      comm, [](const ncclComm& own) { return own.device; }, device);
}
NCCL_ENTRY(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank)) {
  return tell(
      comm, [](const ncclComm& own) { return own.rank; }, rank);
}

NCCL_ENTRY(ncclResult_t, ncclRedOpCreatePreMulSum,
           (ncclRedOp_t * op, void* scalar, ncclDataType_t type, ncclScalarResidence_t, ncclComm_t comm)) {
  const Communicator communicator = communicator_of(comm);
  if (!communicator || !op || !scalar || size_of(type) == 0) return ncclInvalidArgument;
  const std::lock_guard lock(communicator->mutex);
  communicator->reductions.push_back({ncclSum, true, scalar_of(type, scalar)});
  *op = static_cast<ncclRedOp_t>(static_cast<int>(ncclNumOps) + static_cast<int>(communicator->reductions.size()) - 1);
  return ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) {
  const Communicator communicator = communicator_of(comm);
  if (!communicator) return ncclInvalidArgument;
  const std::lock_guard lock(communicator->mutex);
  const int index = static_cast<int>(op) - static_cast<int>(ncclNumOps);
  return index >= 0 && static_cast<size_t>(index) < communicator->reductions.size() ? ncclSuccess : ncclInvalidArgument;
}
