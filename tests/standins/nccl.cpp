// One process is one rank; nothing is exchanged: a collective takes as long as SIMGPU_KERNEL_TIME says. Inside a group
// nothing is launched before its end, and then one kernel for all of a communicator and stream, as NCCL does.
#include <vector>

#include "tests/standins/standin.h"

namespace standin {

struct Comm {
  int rank = 0, ranks = 1, device = 0;
};
struct Pending {
  void *comm, *stream;
  std::string name;
  bool operator==(const Pending& other) const { return comm == other.comm && stream == other.stream; }
};
static thread_local int depth = 0;
static thread_local std::vector<Pending> pending;

static void end_group() {
  if (--depth > 0) return;
  while (!pending.empty()) {
    const Pending first = pending.front();
    launch(first.name, first.stream, 16, 512);
    std::vector<Pending> rest;
    for (const Pending& other : pending) {
      if (!(other == first)) rest.push_back(other);
    }
    pending.swap(rest);
  }
}

static int collective(CollectiveKind what, void* communicator, void* stream) {
  static const char* const names[] = {"",
                                      "AllReduce_Sum_f32_RING_LL",
                                      "Broadcast_RING_LL",
                                      "Reduce_Sum_f32_RING_LL",
                                      "AllGather_RING_LL",
                                      "ReduceScatter_Sum_f32_RING_LL",
                                      "SendRecv",
                                      "SendRecv",
                                      "SendRecv",
                                      "SendRecv",
                                      "SendRecv"};
  const std::string plain = std::string("ncclDevKernel_") + names[static_cast<int>(what)];
  const std::string name = "_Z" + std::to_string(plain.size()) + plain + "24ncclDevKernelArgsStorageILm4096EE";
  if (depth > 0)
    pending.push_back({communicator, stream, name});
  else
    launch(name, stream, 16, 512);
  return 0;
}

}  // namespace standin

using standin::collective;
using standin::CollectiveKind;
using standin::Comm;
using standin::NcclId;

// As in NCCL: the p-name is the function, the plain one a weak alias of it.
#define GT_NCCL(name, signature, ...)             \
  GT_EXPORT int p##name signature { __VA_ARGS__ } \
  extern "C" __attribute__((visibility("default"), weak, alias("p" #name))) int name signature;

GT_NCCL(ncclGetUniqueId, (NcclId * id), std::memset(id, 7, sizeof *id); return 0;)
GT_NCCL(ncclCommCount, (void* comm, int* count), *count = static_cast<Comm*>(comm)->ranks; return 0;)
GT_NCCL(ncclCommUserRank, (void* comm, int* rank), *rank = static_cast<Comm*>(comm)->rank; return 0;)
GT_NCCL(ncclCommCuDevice, (void* comm, int* device), *device = static_cast<Comm*>(comm)->device; return 0;)
GT_NCCL(ncclCommInitRank, (void** comm, int ranks, NcclId, int rank), *comm = new Comm{rank, ranks, 0}; return 0;)
GT_NCCL(ncclCommInitRankConfig, (void** comm, int ranks, NcclId, int rank, void*), *comm = new Comm{rank, ranks, 0};
        return 0;)
GT_NCCL(ncclCommInitRankScalable, (void** comm, int ranks, int rank, int, NcclId*, void*),
        *comm = new Comm{rank, ranks, 0};
        return 0;)
GT_NCCL(ncclCommInitAll, (void** comms, int count, const int* devices),
        for (int i = 0; i < count; ++i) comms[i] = new Comm{i, count, devices ? devices[i] : i};
        return 0;)
// The child has the ranks of its parent, in the order of the keys.
GT_NCCL(ncclCommSplit, (void* comm, int color, int key, void** child, void*),
        *child = color < 0 ? nullptr : new Comm{key, static_cast<Comm*>(comm)->ranks, 0};
        return 0;)
GT_NCCL(ncclCommFinalize, (void*), return 0;)
GT_NCCL(ncclCommDestroy, (void* comm), delete static_cast<Comm*>(comm); return 0;)
GT_NCCL(ncclCommAbort, (void* comm), delete static_cast<Comm*>(comm); return 0;)
GT_NCCL(ncclGroupStart, (), ++standin::depth; return 0;)
GT_NCCL(ncclGroupEnd, (), standin::end_group(); return 0;)
GT_NCCL(ncclAllReduce, (const void*, void*, size_t, int, int, void* comm, void* stream),
        return collective(CollectiveKind::AllReduce, comm, stream);)
GT_NCCL(ncclReduce, (const void*, void*, size_t, int, int, int, void* comm, void* stream),
        return collective(CollectiveKind::Reduce, comm, stream);)
GT_NCCL(ncclBroadcast, (const void*, void*, size_t, int, int, void* comm, void* stream),
        return collective(CollectiveKind::Broadcast, comm, stream);)
// Through its own exported name, as in NCCL: a call that the library makes itself.
extern "C" int ncclBroadcast(const void*, void*, size_t, int, int, void*, void*);
GT_NCCL(ncclBcast, (void* buffer, size_t count, int type, int root, void* comm, void* stream),
        return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);)
GT_NCCL(ncclReduceScatter, (const void*, void*, size_t, int, int, void* comm, void* stream),
        return collective(CollectiveKind::ReduceScatter, comm, stream);)
GT_NCCL(ncclAllGather, (const void*, void*, size_t, int, void* comm, void* stream),
        return collective(CollectiveKind::AllGather, comm, stream);)
GT_NCCL(ncclAlltoAll, (const void*, void*, size_t, int, void* comm, void* stream),
        return collective(CollectiveKind::AllToAll, comm, stream);)
GT_NCCL(ncclGather, (const void*, void*, size_t, int, int, void* comm, void* stream),
        return collective(CollectiveKind::Gather, comm, stream);)
GT_NCCL(ncclScatter, (const void*, void*, size_t, int, int, void* comm, void* stream),
        return collective(CollectiveKind::Scatter, comm, stream);)
GT_NCCL(ncclSend, (const void*, size_t, int, int, void* comm, void* stream),
        return collective(CollectiveKind::Send, comm, stream);)
GT_NCCL(ncclRecv, (void*, size_t, int, int, void* comm, void* stream),
        return collective(CollectiveKind::Recv, comm, stream);)
GT_EXPORT const char* ncclGetErrorString(int result) { return result ? "error" : "no error"; }
