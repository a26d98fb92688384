// A communicator as one rank holds it.
//   · Calls of the program may come from any thread; what runs on the device runs on the driver's worker thread alone.
//   · Non-blocking communicators become ready by being asked: nothing of ours runs in the background.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/libs/nccl/meeting.h"
#include "simgpu/libs/nccl/operation.h"

struct ncclComm {
  int rank = 0, ranks = 1;
  CUcontext context = nullptr;
  int device = 0;
  bool blocking = true;
  std::unique_ptr<simlibs::Meeting> meeting;  // null: a split that is under way
  simlibs::MeetingId id;                      // of the meeting, where this rank made it or was given it

  std::atomic<ncclResult_t> error{ncclSuccess};  // what ncclCommGetAsyncError tells; stays
  std::atomic<bool> aborted{false};

  std::mutex mutex;      // submission, splits, reductions
  uint64_t tickets = 0;  // of launches outside of captures
  uint64_t splits = 0;
  std::shared_ptr<ncclComm> last_child;        // until it has been met
  std::vector<simlibs::Reduction> reductions;  // made by the program; ncclNumOps + index
  // A child that is not met yet: whose splits it is of, which, and who takes part.
  std::shared_ptr<ncclComm> parent;
  uint64_t split = 0;
  int color = 0;
  std::vector<int> asked;          // parent ranks that publish
  simlibs::MeetingId own_meeting;  // made for the split, given back if another's is taken

  std::atomic<uint64_t> pending{0};  // launches outside of captures that have not ended
  // The worker's.
  uint64_t served = 0;  // tickets
  bool busy = false;    // an execution is under way
  uint64_t last_end = 0;
  uint64_t collectives = 0;                 // positions
  std::map<int, uint64_t> sends, receives;  // positions by peer
  uint64_t next_look = 0;                   // at the other ranks' lives
};

namespace simlibs {

using Communicator = std::shared_ptr<ncclComm>;

// Null: no such communicator, or it was destroyed.
Communicator communicator_of(ncclComm_t handle);
ncclComm_t register_communicator(Communicator communicator);
void forget_communicator(ncclComm_t handle);

// Announces the rank, in the current context. The communicator is registered at once and ready when all have come.
ncclResult_t begin_communicator(const MeetingId& id, int rank, int ranks, bool blocking, Communicator* made);
// Publishes what the rank wants; `asked` are the ranks of the parent that take part. The child's place follows from the
// others': it is begun when they have published. `made` is null for NCCL_SPLIT_NOCOLOR.
ncclResult_t begin_split(const Communicator& parent, int color, int key, std::vector<int> asked, bool blocking,
                         Communicator* made);

// One step towards being ready, without waiting: ncclSuccess, ncclInProgress, or the error.
ncclResult_t advance(ncclComm& communicator);
// Until it is ready, or it is aborted or another rank is lost.
ncclResult_t wait_until_ready(ncclComm& communicator);
// Until nothing of it is under way on the device, or it is aborted.
void wait_until_idle(ncclComm& communicator);

}  // namespace simlibs
