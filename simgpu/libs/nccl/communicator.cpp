#include "simgpu/libs/nccl/communicator.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "simgpu/libs/common/launch.h"

namespace simlibs {
namespace {

constexpr long kPollNanos = 100'000;

struct Registry {
  std::mutex mutex;
  std::map<ncclComm_t, Communicator> all;
};
// Never destroyed: programs destroy communicators in exit handlers.
Registry& registry() {
  static Registry* const own = new Registry;
  return *own;
}

void rest() {
  const timespec moment{0, kPollNanos};
  nanosleep(&moment, nullptr);
}

ncclResult_t enter(ncclComm& communicator, const MeetingId& id) {
  communicator.meeting = Meeting::open(id, communicator.rank, communicator.ranks);
  if (!communicator.meeting) return ncclSystemError;
  communicator.id = id;
  return communicator.meeting->announce(communicator.device) ? ncclSuccess : ncclInvalidUsage;
}

// All that take part have published: who is in the child, and who of them comes first.
ncclResult_t enter_split(ncclComm& child) {
  Meeting& of_parent = *child.parent->meeting;
  for (const int rank : child.asked) {
    if (of_parent.line(rank).splits.load(std::memory_order_acquire) <= child.split) return ncclInProgress;
  }
  const auto posting = [&](int rank) -> const SplitPosting& { return of_parent.line(rank).split[child.split % 2]; };
  std::vector<int> members;
  for (const int rank : child.asked) {
    if (posting(rank).color == child.color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return posting(a).key < posting(b).key; });
  const auto own = std::find(members.begin(), members.end(), child.parent->rank);
  child.rank = static_cast<int>(own - members.begin());
  child.ranks = static_cast<int>(members.size());
  const ncclResult_t result = enter(child, posting(members.front()).meeting);
  if (child.rank != 0) Meeting::forget(child.own_meeting);
  child.own_meeting = {};
  return result;
}

}  // namespace

Communicator communicator_of(ncclComm_t handle) {
  Registry& own = registry();
  const std::lock_guard lock(own.mutex);
  const auto at = own.all.find(handle);
  return at == own.all.end() ? nullptr : at->second;
}

ncclComm_t register_communicator(Communicator communicator) {
  Registry& own = registry();
  const std::lock_guard lock(own.mutex);
  ncclComm* handle = communicator.get();
  own.all.emplace(handle, std::move(communicator));
  return handle;
}

void forget_communicator(ncclComm_t handle) {
  Registry& own = registry();
  Communicator last;  // destroyed outside the lock
  const std::lock_guard lock(own.mutex);
  const auto at = own.all.find(handle);
  if (at == own.all.end()) return;
  last = std::move(at->second);
  own.all.erase(at);
}

ncclResult_t begin_communicator(const MeetingId& id, int rank, int ranks, bool blocking, Communicator* made) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto communicator = std::make_shared<ncclComm>();
  communicator->rank = rank;
  communicator->ranks = ranks;
  communicator->blocking = blocking;
  CUdevice device = 0;
  if (enter_context() != CUDA_SUCCESS || cuCtxGetCurrent(&communicator->context) != CUDA_SUCCESS ||
      cuCtxGetDevice(&device) != CUDA_SUCCESS) {
    return ncclUnhandledCudaError;
  }
  communicator->device = device;
  const ncclResult_t result = enter(*communicator, id);
  if (result == ncclSuccess) *made = communicator;
  return result;
}

ncclResult_t begin_split(const Communicator& parent, int color, int key, std::vector<int> asked, bool blocking,
                         Communicator* made) {
  const std::lock_guard lock(parent->mutex);
  RankLine& line = parent->meeting->own();
  // The place of the one before the last is taken again: it must have been read by all, and is when the last is complete.
  const uint64_t split = parent->splits;
  if (const Communicator before = std::exchange(parent->last_child, nullptr)) {
    while (advance(*before) == ncclInProgress && !before->meeting) rest();
  }
  if (split > 0) {
    for (const int rank : asked) {
      while (parent->meeting->line(rank).splits.load(std::memory_order_acquire) < split) {
        if (parent->aborted.load() || parent->meeting->lost_rank()) return ncclRemoteError;
        rest();
      }
    }
  }
  SplitPosting posting{color, key, {}};
  if (color != NCCL_SPLIT_NOCOLOR && !Meeting::make(posting.meeting)) return ncclSystemError;
  line.split[split % 2] = posting;
  line.splits.store(split + 1, std::memory_order_release);
  parent->splits = split + 1;
  *made = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  auto child = std::make_shared<ncclComm>();
  child->context = parent->context;
  child->device = parent->device;
  child->blocking = blocking;
  child->parent = parent;
  child->split = split;
  child->color = color;
  child->asked = std::move(asked);
  child->own_meeting = posting.meeting;
  parent->last_child = child;
  *made = child;
  return ncclSuccess;
}

ncclResult_t advance(ncclComm& communicator) {
  const std::lock_guard lock(communicator.mutex);
  if (const ncclResult_t error = communicator.error.load(); error != ncclSuccess) return error;
  ncclResult_t result = ncclSuccess;
  if (!communicator.meeting) {
    result = enter_split(communicator);
    if (result == ncclInProgress && communicator.parent->meeting->lost_rank()) result = ncclRemoteError;
  }
  if (result == ncclSuccess && !communicator.meeting->complete()) {
    result = communicator.meeting->lost_rank() ? ncclRemoteError : ncclInProgress;
  } else if (result == ncclSuccess) {
    Meeting::forget(communicator.id);
    communicator.id = {};
    communicator.parent = nullptr;
  }
  if (result != ncclSuccess && result != ncclInProgress) communicator.error = result;
  return result;
}

ncclResult_t wait_until_ready(ncclComm& communicator) {
  for (;;) {
    const ncclResult_t result = advance(communicator);
    if (result != ncclInProgress) return result;
    if (communicator.aborted.load()) return ncclInvalidUsage;
    rest();
  }
}

void wait_until_idle(ncclComm& communicator) {
  while (communicator.pending.load(std::memory_order_acquire) != 0 && !communicator.aborted.load()) rest();
}

}  // namespace simlibs
