// NCCL: operations, and what is known of communicators. A communicator is recorded once, as a definition; one that
// appears without a definition (made before the session, or by a split) is asked for rank and size before its first
// operation is recorded, when it must be ready anyway.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "interpose/definition/facts.h"
#include "interpose/hot/session.h"
#include "interpose/library/library_records.h"
#include "interpose/lookup/driver_query.h"

namespace gputrace {
namespace {

// Communicators that are recorded already, by handle. A later one may take over the place of another, which is then
// recorded again at its next operation.
struct KnownCommunicator {
  std::atomic<u64> communicator;
  std::atomic<u64> generation;  // of the session that has its definition
  std::atomic<u64> id;
  std::atomic<u64> splits;
};
constexpr u32 kMostKnown = 1024;
constinit KnownCommunicator known[kMostKnown]{};

KnownCommunicator& place_of(const void* communicator) {
  return known[(bits(communicator) * 0x9e3779b97f4a7c15ull) >> 54];
}
static_assert(kMostKnown == 1u << (64 - 54));

i32 current_device() {
  CUdevice device = -1;
  const DriverQuery& query = driver_query();
  return query.cuCtxGetDevice && query.cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

struct Facts {
  u64 id;
  i32 rank, ranks, device;
};

void record_communicator(const FinishedCall& call, const void* communicator, const Facts& facts, bool complete) {
  KnownCommunicator& place = place_of(communicator);
  place.communicator.store(bits(communicator), std::memory_order_relaxed);
  place.id.store(facts.id, std::memory_order_relaxed);
  place.splits.store(0, std::memory_order_relaxed);
  place.generation.store(complete ? call.generation : 0, std::memory_order_relaxed);
  Communicator record{};
  record.communicator = bits(communicator);
  record.id_hash = facts.id;
  record.rank = facts.rank;
  record.ranks = facts.ranks;
  record.device = facts.device;
  const FinishedCall definition = call.nameless();
  const Definitions lock;
  if (!lock.held()) return emit(definition, record);
  define(definition, record);
}

u64 mix(u64 a, u64 b, u64 c) {
  const u64 words[] = {a, b, c};
  return XXH3_64bits(words, sizeof words);
}

// After an operation succeeded the communicator was ready, so its getters answer without a word to NCCL's log.
void record_unknown(const LibraryCall& did, void* communicator) {
  static constinit LibraryGetter get_rank{"ncclCommUserRank"};
  static constinit LibraryGetter get_count{"ncclCommCount"};
  static constinit LibraryGetter get_device{"ncclCommCuDevice"};
  const auto ask = [&](LibraryGetter& getter) -> i32 {
    const auto function = reinterpret_cast<int (*)(void*, int*)>(getter.find(did.real));
    int value = -1;
    return function && function(communicator, &value) == 0 ? value : -1;
  };
  const KnownCommunicator& place = place_of(communicator);
  const bool here = place.communicator.load(std::memory_order_relaxed) == bits(communicator);
  const u64 id = here ? place.id.load(std::memory_order_relaxed) : 0;
  record_communicator(did.call, communicator, {id, ask(get_rank), ask(get_count), ask(get_device)}, true);
}

bool is_recorded(const FinishedCall& call, const void* communicator) {
  const KnownCommunicator& place = place_of(communicator);
  return place.communicator.load(std::memory_order_relaxed) == bits(communicator) &&
         place.generation.load(std::memory_order_relaxed) == call.generation;
}

}  // namespace

u64 id_hash(const NcclId* ids, int count) {
  return ids && count > 0 && count <= 4096 ? XXH3_64bits(ids, static_cast<size_t>(count) * sizeof(NcclId)) : 0;
}

void communicator_made(const LibraryCall& did, void* communicator, u64 id, int rank, int ranks) {
  ErrnoGuard guard;
  if (did.collected) object(did, communicator);
  if (communicator) record_communicator(did.call, communicator, {id, rank, ranks, current_device()}, true);
}

void communicators_made(const LibraryCall& did, void* const* communicators, int count, const int* devices) {
  ErrnoGuard guard;
  if (did.collected) object(did, u64{0});
  if (!did.call.ok() || !communicators) return;
  // No id was passed: one that nothing else in this process has, so that the ranks belong together.
  const u64 id = mix(did.call.begin, did.call.end, bits(communicators));
  for (int i = 0; i < count && i < 1024; ++i) {
    if (communicators[i])
      record_communicator(did.call, communicators[i], {id, i, count, devices ? devices[i] : i}, true);
  }
}

void communicator_split(const LibraryCall& did, void* parent, int color, void* child) {
  ErrnoGuard guard;
  object(did, child);
  if (!did.ok_or_begun()) return;
  // Every rank splits its communicator the same number of times: parent, number and color name the child on all of
  // them.
  KnownCommunicator& place = place_of(parent);
  u64 id = 0;
  if (place.communicator.load(std::memory_order_relaxed) == bits(parent)) {
    const u64 number = place.splits.fetch_add(1, std::memory_order_relaxed);
    const u64 of_parent = place.id.load(std::memory_order_relaxed);
    if (of_parent) id = mix(of_parent, number, static_cast<u64>(color));
  }
  if (child) record_communicator(did.call, child, {id, -1, -1, current_device()}, false);
}

void communicator_gone(const LibraryCall& did, void* communicator) {
  object(did, communicator);
  KnownCommunicator& place = place_of(communicator);
  if (did.call.ok() && place.communicator.load(std::memory_order_relaxed) == bits(communicator)) {
    place.communicator.store(0, std::memory_order_relaxed);
    place.generation.store(0, std::memory_order_relaxed);
  }
}

void collective(const LibraryCall& did, const CollectiveCall& c) {
  ErrnoGuard guard;
  if (did.call.ok() && c.communicator && !is_recorded(did.call, c.communicator)) record_unknown(did, c.communicator);
  Collective record{};
  record.communicator = bits(c.communicator);
  record.stream = bits(c.stream);
  record.count = c.count;
  record.send = bits(c.send);
  record.receive = bits(c.receive);
  record.what = static_cast<u32>(c.what);
  record.type = c.type;
  record.reduction = c.reduction;
  record.peer = c.peer;
  emit(did.call, record);
}

}  // namespace gputrace
