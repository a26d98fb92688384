#include "analysis/timeline/library_calls.h"

#include <algorithm>

#include "analysis/facts/source_lines.h"
#include "trace/reader.h"

namespace gputrace {
namespace {

u64 hash_of(u16 call, const LibraryShape& shape, u32 communicator) {
  u64 hash = 0x9e3779b97f4a7c15ull;
  const auto mix = [&hash](u64 value) {
    hash = (hash ^ value) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  };
  mix(static_cast<u64>(call) << 32 | communicator);
  mix(shape.m);
  mix(shape.n);
  mix(shape.k);
  mix(shape.batch);
  mix(shape.flops ^ shape.nonzeros << 1);
  mix(static_cast<u64>(static_cast<u32>(shape.type_a)) << 32 | static_cast<u32>(shape.compute));
  return hash;
}

bool point_to_point(u32 what) {
  return what == static_cast<u32>(CollectiveKind::Send) || what == static_cast<u32>(CollectiveKind::Recv);
}

bool is_grouped_product(std::string_view name) { return name.find("GroupedBatched") != std::string_view::npos; }

void add_matmul(const Matmul& value, LibraryShape& shape) {
  shape.kind = LibraryKind::Matmul;
  shape.m = value.m;
  shape.n = value.n;
  shape.k = value.k;
  shape.batch = value.batch;
  shape.nonzeros = value.nonzeros;
  shape.type_a = value.type_a;
  shape.type_b = value.type_b;
  shape.type_c = value.type_c;
  shape.compute = value.compute;
  shape.math_mode = value.math_mode;
  shape.flags = value.flags;
  shape.lda = value.lda;
  shape.ldb = value.ldb;
  shape.ldc = value.ldc;
}

void add_convolution(const Convolution& value, LibraryShape& shape) {
  shape.kind = LibraryKind::Convolution;
  shape.type_a = value.type;
  shape.compute = value.compute;
  shape.math_mode = value.math_mode;
  shape.what = value.what;
  const u32 input[] = {value.input_n, value.input_c, value.input_d, value.input_h, value.input_w};
  const u32 filter[] = {value.output_c, value.filter_d, value.filter_h, value.filter_w, value.groups};
  std::copy(input, input + 5, shape.input);
  std::copy(filter, filter + 5, shape.filter);
  shape.flops = value.flops;
}

}  // namespace

LibraryShape library_shape(const RecordHeader& record) {
  LibraryShape shape;
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::Matmul:
      add_matmul(decode<Matmul>(record), shape);
      break;
    case RecordType::Convolution:
      add_convolution(decode<Convolution>(record), shape);
      break;
    case RecordType::Fft: {
      const auto value = decode<Fft>(record);
      shape.kind = LibraryKind::Fft;
      shape.m = value.x;
      shape.n = value.y;
      shape.k = value.z;
      shape.batch = value.batch;
      shape.type_a = static_cast<i32>(value.type);
      break;
    }
    case RecordType::Collective: {
      const auto value = decode<Collective>(record);
      shape.kind = LibraryKind::Collective;
      shape.m = value.count;
      shape.type_a = value.type;
      shape.what = value.what;
      break;
    }
    default:
      break;
  }
  return shape;
}

u32 LibraryCalls::row_of(u16 call, const LibraryShape& shape, u32 communicator) {
  std::vector<u32>& candidates = rows_[hash_of(call, shape, communicator)];
  for (const u32 index : candidates) {
    const LibraryRow& row = facts_.rows[index];
    if (row.call == call && row.communicator == communicator && row.shape == shape) return index;
  }
  const u32 index = static_cast<u32>(facts_.rows.size());
  candidates.push_back(index);
  LibraryRow& row = facts_.rows.emplace_back();
  row.call = call;
  row.shape = shape;
  row.communicator = communicator;
  return index;
}

u32 LibraryCalls::communicator_of(u64 handle) {
  const auto known = communicators_.find(handle);
  if (known != communicators_.end()) return known->second;
  const u32 index = static_cast<u32>(facts_.communicators.size());
  facts_.communicators.push_back({handle, 0, -1, -1, -1});
  numbers_.push_back(0);
  communicators_.emplace(handle, index);
  return index;
}

// Told again when it is known better: after a split, rank and size come with its first operation.
void LibraryCalls::communicator(const Communicator& record) {
  const auto known = communicators_.find(record.communicator);
  const CommunicatorFacts facts{record.communicator, record.id_hash, record.rank, record.ranks, record.device};
  if (known != communicators_.end()) {
    CommunicatorFacts& entry = facts_.communicators[known->second];
    const bool completes = entry.ranks < 0 && (entry.id == 0 || entry.id == facts.id);
    if (completes) {
      entry = facts;
      return;
    }
    if (entry.id == facts.id && entry.rank == facts.rank && entry.ranks == facts.ranks && entry.id != 0) return;
  }
  constexpr std::size_t kMostCommunicators =
      65'536;  // more than any process makes: of others rank and size are not known
  if (facts_.communicators.size() >= kMostCommunicators) return;
  communicators_[record.communicator] = static_cast<u32>(facts_.communicators.size());
  facts_.communicators.push_back(facts);
  numbers_.push_back(0);
}

void LibraryCalls::launched(const Launched& made) {
  if (!facts_.collected || made.thread >= threads_.size()) return;
  std::deque<Launch>& launches = threads_[made.thread].launches;
  if (launches.size() >= kKeep) {
    facts_.launches_forgotten += launches.front().owner != kNobody && !launches.front().timed;
    launches.pop_front();
  }
  Launch launch;
  launch.begin = made.begin;
  launch.kernel = made.kernel;
  launch.captured = made.captured;
  launch.counted = made.counted;
  launches.push_back(launch);
}

LibraryUse& LibraryCalls::use(u32 kernel, u32 row) {
  const auto [at, added] =
      uses_.try_emplace(static_cast<u64>(kernel) << 32 | row, static_cast<u32>(facts_.uses.size()));
  if (added) facts_.uses.push_back({kernel, row, 0, 0});
  return facts_.uses[at->second];
}

u32 LibraryCalls::first_row(u32 owner) const {
  if (!(owner & kGroupBit)) return owner;
  const Group& group = groups_[owner & ~kGroupBit];
  return group.parts.empty() ? kNobody : group.parts.front().row;
}

// A launch that has an owner and a time.
void LibraryCalls::add_time(const Launch& launch) {
  if (launch.captured || !launch.counted) return;
  const u32 row = first_row(launch.owner);
  if (launch.owner & kGroupBit) {
    Group& group = groups_[launch.owner & ~kGroupBit];
    group.device_ns += launch.device_ns;
    ++group.timed;
  } else {
    facts_.rows[row].device_ns += launch.device_ns;
  }
  if (row == kNobody) return;
  ++facts_.rows[row].timed_kernels;
  use(launch.kernel, row).device_ns += launch.device_ns;
}

// What was launched since `begin` and belongs to nobody yet.
LibraryCalls::Claimed LibraryCalls::claim(Thread& thread, Nanos begin, u32 owner) {
  Claimed claimed;
  for (auto at = thread.launches.rbegin(); at != thread.launches.rend() && at->begin >= begin; ++at) {
    if (at->owner != kNobody) continue;
    at->owner = owner;
    if (!at->counted) continue;
    ++facts_.launches;
    const u32 row = first_row(owner);
    if (at->captured) {
      ++claimed.captured;
      if (row != kNobody) ++facts_.rows[row].captured_kernels;
      continue;
    }
    ++claimed.plain;
    if (row != kNobody) {
      ++facts_.rows[row].kernels;
      ++use(at->kernel, row).launches;
    }
    if (at->timed) add_time(*at);
  }
  return claimed;
}

u32 LibraryCalls::make_group(std::vector<Part> parts, bool open) {
  u32 index;
  if (free_groups_.empty()) {
    index = static_cast<u32>(groups_.size());
    groups_.emplace_back();
  } else {
    index = free_groups_.back();
    free_groups_.pop_back();
    groups_[index] = {};
  }
  groups_[index].parts = std::move(parts);
  groups_[index].open = open;
  return index;
}

void LibraryCalls::claim_for_group(Thread& thread, Nanos begin, u32 index) {
  const Claimed claimed = claim(thread, begin, kGroupBit | index);
  groups_[index].launches = claimed.plain;
  if (claimed.plain == 0 && claimed.captured) {
    for (const Part& part : groups_[index].parts) facts_.rows[part.row].captured_calls += part.counted;
  }
  if (!groups_[index].open && groups_[index].timed == groups_[index].launches) settle(index);
}

// Shares a group's device time out over its operations by weight; the last one takes what rounding left.
void LibraryCalls::settle(u32 index) {
  Group& group = groups_[index];
  long double weights = 0;
  for (const Part& part : group.parts) weights += static_cast<long double>(part.weight);
  u64 left = group.device_ns;
  const bool timed = group.launches > 0 && group.timed == group.launches;
  for (std::size_t i = 0; i < group.parts.size() && timed; ++i) {
    const Part& part = group.parts[i];
    u64 time = left;
    if (i + 1 < group.parts.size()) {
      const long double fraction = weights > 0 ? static_cast<long double>(part.weight) / weights
                                               : 1.0L / static_cast<long double>(group.parts.size());
      time = std::min(left, static_cast<u64>(static_cast<long double>(group.device_ns) * fraction));
    }
    left -= time;
    if (part.counted) {
      facts_.rows[part.row].device_ns += time;
      ++facts_.rows[part.row].timed_calls;
    }
    if (part.instance == kNobody) continue;
    facts_.collectives[part.instance].device_ns = time;
    facts_.collectives[part.instance].timed = true;
  }
  group = {};
  free_groups_.push_back(index);
}

void LibraryCalls::on_operation(const Ended& call, const RecordHeader& record) {
  Thread& thread = threads_[call.thread];
  const auto value = decode<Collective>(record);
  const u32 communicator = communicator_of(value.communicator);
  const LibraryShape shape = library_shape(record);
  Part part;
  part.row = row_of(call.call, shape, communicator);
  part.counted = call.counted;
  part.weight = collective_bytes(shape, std::max(1, facts_.communicators[communicator].ranks));
  if (!point_to_point(shape.what)) {
    const u32 number = numbers_[communicator]++;
    if (facts_.collectives.size() < LibraryFacts::kCollectivesKept) {
      part.instance = static_cast<u32>(facts_.collectives.size());
      facts_.collectives.push_back({communicator, part.row, number, 0, false});
    } else {
      ++facts_.collectives_not_kept;
    }
  }
  if (call.counted) {
    LibraryRow& row = facts_.rows[part.row];
    ++row.calls;
    row.host_ns += static_cast<u64>(call.end - call.begin);
  }
  if (thread.group_depth > 0) {
    thread.group.push_back(part);
    return;
  }
  claim_for_group(thread, call.begin, make_group({part}, false));
}

// One call, a record for each of its groups: they share what it launched in the ratio of their FLOPs.
void LibraryCalls::on_grouped_product(const Ended& call, u32 row, u64 weight) {
  Thread& thread = threads_[call.thread];
  const Part part{row, kNobody, weight, call.counted};
  if (call.first_of_call || thread.grouped == kNobody) {
    if (thread.grouped != kNobody) groups_[thread.grouped].open = false;
    thread.grouped = make_group({part}, true);
    claim_for_group(thread, call.begin, thread.grouped);
    return;
  }
  groups_[thread.grouped].parts.push_back(part);
}

void LibraryCalls::count_flops(u32 origin, const LibraryShape& shape) {
  if (shape.kind == LibraryKind::Other || shape.kind == LibraryKind::Collective) return;
  OriginFlops& sum = entry_at(facts_.flops, origin);
  const u64 flops = flops_of(shape);
  ++sum.calls;
  sum.flops += flops;
  sum.untold += flops == 0;
}

void LibraryCalls::ended(const Ended& call, const RecordHeader& record) {
  if (!facts_.collected || call.thread >= threads_.size()) return;
  Thread& thread = threads_[call.thread];
  const bool grouped = is_grouped_product(call.name);
  if (thread.grouped != kNobody && !(grouped && !call.first_of_call)) {  // its last record has come
    groups_[thread.grouped].open = false;
    if (groups_[thread.grouped].timed == groups_[thread.grouped].launches) settle(thread.grouped);
    thread.grouped = kNobody;
  }
  const bool done = call.result == 0 || (call.result == kNcclInProgress && call.name.substr(0, 4) == "nccl");
  if (call.name == "ncclGroupStart") {
    if (done) ++thread.group_depth;
    return;
  }
  if (call.name == "ncclGroupEnd") {
    if (thread.group_depth > 0 && --thread.group_depth > 0) return;
    std::vector<Part> parts;
    parts.swap(thread.group);
    if (!parts.empty()) return claim_for_group(thread, call.begin, make_group(std::move(parts), false));
  }
  if (record.type == static_cast<u16>(RecordType::Collective) && done) return on_operation(call, record);
  const LibraryShape shape = done ? library_shape(record) : LibraryShape{};
  const u32 index = row_of(call.call, shape, kNobody);
  if (call.counted && done) {
    ++facts_.rows[index].calls;
    if (call.first_of_call) facts_.rows[index].host_ns += static_cast<u64>(call.end - call.begin);
  }
  if (grouped && done) {
    if (call.counted) count_flops(call.origin, {.kind = shape.kind});  // whether it was captured shows later
    return on_grouped_product(call, index, flops_of(shape));
  }
  const Claimed claimed = claim(thread, call.begin, index);
  if (!call.counted) return;
  if (claimed.plain == 0 && claimed.captured)
    ++facts_.rows[index].captured_calls;
  else if (done)
    count_flops(call.origin, shape);
}

void LibraryCalls::executed(u32 thread, Nanos launch_begin, u64 duration) {
  if (!facts_.collected || thread >= threads_.size()) return;
  std::deque<Launch>& launches = threads_[thread].launches;
  auto at = std::lower_bound(launches.begin(), launches.end(), launch_begin,
                             [](const Launch& launch, Nanos begin) { return launch.begin < begin; });
  while (at != launches.end() && at->begin == launch_begin && at->timed) ++at;
  if (at == launches.end() || at->begin != launch_begin) return;
  at->timed = true;
  at->device_ns = duration;
  if (at->owner == kNobody || !at->counted || at->captured) return;
  add_time(*at);
  if (!(at->owner & kGroupBit)) return;
  const u32 index = at->owner & ~kGroupBit;
  if (!groups_[index].open && groups_[index].timed == groups_[index].launches) settle(index);
}

void LibraryCalls::finish() {
  for (Thread& thread : threads_) {
    if (thread.grouped == kNobody) continue;
    groups_[thread.grouped].open = false;
    if (groups_[thread.grouped].timed == groups_[thread.grouped].launches) settle(thread.grouped);
  }
  std::sort(facts_.uses.begin(), facts_.uses.end(), [](const LibraryUse& a, const LibraryUse& b) {
    return a.kernel != b.kernel ? a.kernel < b.kernel : a.row < b.row;
  });
  uses_.clear();
}

}  // namespace gputrace
