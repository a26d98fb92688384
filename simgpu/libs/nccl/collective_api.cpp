// The calls that move bytes.
#include "simgpu/libs/nccl/entry.h"
#include "simgpu/libs/nccl/group.h"

using namespace simlibs;

namespace {

bool reduction_of(ncclComm_t handle, ncclRedOp_t op, Reduction* reduction) {
  const int number = static_cast<int>(op);
  if (number < 0) return false;
  if (number < ncclNumOps) {
    *reduction = {op, false, 1};
    return true;
  }
  const Communicator communicator = communicator_of(handle);
  if (!communicator) return false;
  const std::lock_guard lock(communicator->mutex);
  const auto index = static_cast<size_t>(number - ncclNumOps);
  if (index >= communicator->reductions.size()) return false;
  *reduction = communicator->reductions[index];
  return true;
}

ncclResult_t reducing(Operation operation, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (!reduction_of(comm, op, &operation.reduction)) return remember(ncclInvalidArgument);
  return enqueue(comm, stream, operation);
}

const char* at(const void* base, size_t count, int rank, ncclDataType_t type) {
  return static_cast<const char*>(base) + count * static_cast<size_t>(rank) * size_of(type);
}
char* at(void* base, size_t count, int rank, ncclDataType_t type) {
  return static_cast<char*>(base) + count * static_cast<size_t>(rank) * size_of(type);
}

// Made of messages, in a group of their own.
template <typename Messages>
ncclResult_t as_messages(ncclComm_t comm, const Messages& messages) {
  const Communicator communicator = communicator_of(comm);
  if (!communicator) return remember(ncclInvalidArgument);
  if (const ncclResult_t ready = wait_until_ready(*communicator); ready != ncclSuccess) return remember(ready);
  group_begin();
  messages(communicator->rank, communicator->ranks);
  return group_end();
}

void send_one(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  enqueue(comm, stream, {Kind::Send, data, nullptr, count, type, {}, peer});
}
void receive_one(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  enqueue(comm, stream, {Kind::Receive, nullptr, data, count, type, {}, peer});
}

}  // namespace

NCCL_ENTRY(ncclResult_t, ncclAllReduce,
           (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
            cudaStream_t stream)) {
  return reducing({Kind::AllReduce, send, receive, count, type, {}, 0}, op, comm, stream);
}
NCCL_ENTRY(ncclResult_t, ncclReduce,
           (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
            ncclComm_t comm, cudaStream_t stream)) {
  return reducing({Kind::Reduce, send, receive, count, type, {}, root}, op, comm, stream);
}
NCCL_ENTRY(ncclResult_t, ncclReduceScatter,
           (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
            cudaStream_t stream)) {
  return reducing({Kind::ReduceScatter, send, receive, count, type, {}, 0}, op, comm, stream);
}
NCCL_ENTRY(ncclResult_t, ncclBroadcast,
           (const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
            cudaStream_t stream)) {
  return enqueue(comm, stream, {Kind::Broadcast, send, receive, count, type, {}, root});
}
NCCL_ENTRY(ncclResult_t, ncclBcast,
           (void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)) {
  return enqueue(comm, stream, {Kind::Broadcast, buffer, buffer, count, type, {}, root});
}
NCCL_ENTRY(ncclResult_t, ncclAllGather,
           (const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)) {
  return enqueue(comm, stream, {Kind::AllGather, send, receive, count, type, {}, 0});
}
NCCL_ENTRY(ncclResult_t, ncclSend,
           (const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) {
  return enqueue(comm, stream, {Kind::Send, data, nullptr, count, type, {}, peer});
}
NCCL_ENTRY(ncclResult_t, ncclRecv,
           (void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) {
  return enqueue(comm, stream, {Kind::Receive, nullptr, data, count, type, {}, peer});
}

NCCL_ENTRY(ncclResult_t, ncclAlltoAll,
           (const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)) {
  if (!send || !receive) return remember(ncclInvalidArgument);
  return as_messages(comm, [&](int, int ranks) {
    for (int i = 0; i < ranks; ++i) {
      send_one(at(send, count, i, type), count, type, i, comm, stream);
      receive_one(at(receive, count, i, type), count, type, i, comm, stream);
    }
  });
}
NCCL_ENTRY(ncclResult_t, ncclGather,
           (const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
            cudaStream_t stream)) {
  return as_messages(comm, [&](int rank, int ranks) {
    send_one(send, count, type, root, comm, stream);
    for (int i = 0; i < ranks && rank == root; ++i)
      receive_one(at(receive, count, i, type), count, type, i, comm, stream);
  });
}
NCCL_ENTRY(ncclResult_t, ncclScatter,
           (const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
            cudaStream_t stream)) {
  return as_messages(comm, [&](int rank, int ranks) {
    for (int i = 0; i < ranks && rank == root; ++i) send_one(at(send, count, i, type), count, type, i, comm, stream);
    receive_one(receive, count, type, root, comm, stream);
  });
}

NCCL_ENTRY(ncclResult_t, ncclGroupStart, ()) {
  group_begin();
  return ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclGroupEnd, ()) { return group_end(); }
NCCL_ENTRY(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * info)) {
  uint64_t nanos = 0;
  const ncclResult_t result = group_estimate(&nanos);
  if (result == ncclSuccess && info) info->estimatedTime = static_cast<float>(nanos) / 1000;  // us
  return result;
}
