// Collectives: one row per communicator, rank, operation and type.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <tuple>

#include "analysis/facts/library_rows.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/collective_match.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

struct CollectiveRowKey {
  std::size_t process = 0;
  u32 communicator = 0;  // index
  u32 what = 0;
  std::string dtype;
  bool operator<(const CollectiveRowKey& other) const {
    return std::tie(process, communicator, what, dtype) <
           std::tie(other.process, other.communicator, other.what, other.dtype);
  }
};
struct CollectiveRowSum {
  u64 calls = 0, bytes = 0, device_ns = 0;
  bool timed = true, sized = true;
  u64 matched = 0, wait_ns = 0, transfer_ns = 0;
  u64 unmatched = 0;
  double bus_bandwidth = 0;  // 0: not known
};

std::string name_of(const CommunicatorFacts& facts) {
  char text[32];
  std::snprintf(text, sizeof text, "%08llx", static_cast<unsigned long long>(facts.id ? facts.id >> 32 : facts.handle));
  return text;
}

bool is_point_to_point(u32 what) {
  return what == static_cast<u32>(CollectiveKind::Send) || what == static_cast<u32>(CollectiveKind::Recv);
}

std::map<CollectiveRowKey, CollectiveRowSum> sums_of(const LoadedRun& run) {
  std::map<CollectiveRowKey, CollectiveRowSum> sums;
  const CollectiveTimes matched = match_collectives(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const LibraryFacts& library = run.processes[p].library;
    for (u32 i = 0; i < library.rows.size(); ++i) {
      const LibraryRow& row = library.rows[i];
      if (row.shape.kind != LibraryKind::Collective || row.calls == 0) continue;
      const i32 ranks = library.communicators[row.communicator].ranks;
      CollectiveRowSum& sum = sums[{p, row.communicator, row.shape.what, dtype_text(row.shape)}];
      sum.calls += row.calls;
      const u64 bytes = collective_bytes(row.shape, ranks);
      sum.sized = sum.sized && (bytes > 0 || row.shape.m == 0);
      sum.bytes += bytes * row.calls;
      u64 nanos = 0;
      if (device_time_of(row, nanos) && row.captured_calls == 0)
        sum.device_ns += nanos;
      else
        sum.timed = false;
      const CollectiveTime& time = matched.of(p, i);
      sum.matched += time.matched;
      sum.wait_ns += time.wait_ns;
      sum.transfer_ns += time.transfer_ns;
    }
  }
  return sums;
}

// Bandwidth over the time that the bytes needed: without the wait for other ranks where that is known.
u64 moving_ns(const CollectiveRowSum& sum) { return sum.matched == sum.calls ? sum.transfer_ns : sum.device_ns; }

void fill_comm(const LoadedRun& run, Table& table) {
  std::map<CollectiveRowKey, CollectiveRowSum> sums = sums_of(run);
  std::map<std::pair<std::size_t, u32>, double> best;  // bus bandwidth of a communicator
  const auto facts_of = [&](const CollectiveRowKey& key) -> const CommunicatorFacts& {
    return run.processes[key.process].library.communicators[key.communicator];
  };
  for (auto& [key, sum] : sums) {
    const double factor = bus_factor(key.what, facts_of(key).ranks);
    if (!sum.timed || !sum.sized || factor <= 0 || moving_ns(sum) == 0) continue;
    sum.bus_bandwidth = static_cast<double>(sum.bytes) * factor / (static_cast<double>(moving_ns(sum)) * 1e-9);
    double& largest = best[{key.process, key.communicator}];
    largest = std::max(largest, sum.bus_bandwidth);
  }
  bool waits = false;
  for (const auto& [key, sum] : sums) {
    const CommunicatorFacts& facts = facts_of(key);
    const bool rate = sum.timed && sum.sized && moving_ns(sum) > 0;
    const bool matched = sum.matched == sum.calls && !is_point_to_point(key.what);
    const double seconds = static_cast<double>(moving_ns(sum)) * 1e-9;
    const auto largest = best.find({key.process, key.communicator});
    std::optional<double> expected;
    if (largest != best.end() && sum.sized && bus_factor(key.what, facts.ranks) > 0)
      expected = static_cast<double>(sum.bytes) * bus_factor(key.what, facts.ranks) / largest->second * 1e9;
    waits = waits || matched;
    const auto whole = [](double value) { return Value(static_cast<i64>(std::llround(value))); };
    table.rows.push_back(
        {name_of(facts), std::string(collective_name(key.what)), text_or_null(key.dtype), number(sum.calls),
         sum.sized ? number(sum.bytes) : Value(), sum.timed ? number(sum.device_ns) : Value(),
         rate ? whole(static_cast<double>(sum.bytes) / seconds) : Value(),
         sum.bus_bandwidth > 0 ? whole(sum.bus_bandwidth) : Value(), matched ? number(sum.wait_ns) : Value(),
         matched ? number(sum.transfer_ns) : Value(), Value(), expected ? whole(*expected) : Value(),
         facts.rank >= 0 ? Value(static_cast<i64>(facts.rank)) : Value(),
         facts.ranks >= 0 ? Value(static_cast<i64>(facts.ranks)) : Value(),
         static_cast<i64>(run.processes[key.process].who.pid)});
  }
  if (!waits)
    table.notes.push_back("wait and transfer need the traces of all ranks of a communicator, each with device times");
  else
    table.notes.push_back(
        "transfer = shortest duration of the same collective over all ranks, wait = the rest; bandwidths are over "
        "transfer");
  if (!table.rows.empty())
    table.notes.push_back("exposed: not told per operation; overview and idle have it per device");
  if (const std::string why = why_no_device_times(run); !why.empty()) table.notes.push_back("no device times: " + why);
  sort_table(table, "total_ns");
}

}  // namespace

extern constexpr SectionReport comm_report = {
    .section = "comm",
    .title = "Communication by communicator and operation",
    .answers =
        "NCCL operations by communicator, rank and type: bytes, time, algorithm and bus bandwidth (the conventions of "
        "nccl-tests), time waited for other ranks (needs the traces of all), time expected at the communicator's best "
        "bandwidth",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Libraries},
    .columns = {{"communicator", Unit::Text, Hint::Handle},
                {"op", Unit::Text},
                {"dtype", Unit::Text},
                {"count", Unit::Count},
                {"bytes", Unit::Bytes},
                {"total_ns", Unit::Nanos},
                {"algo_bandwidth", Unit::BytesPerSecond},
                {"bus_bandwidth", Unit::BytesPerSecond},
                {"wait_ns", Unit::Nanos},
                {"transfer_ns", Unit::Nanos},
                {"exposed_ns", Unit::Nanos},
                extra({"expected_ns", Unit::Nanos}),
                extra({"rank", Unit::Count}),
                extra({"ranks", Unit::Count}),
                extra({"pid", Unit::None, Hint::Detail})},
    .notes =
        {"bytes: of the larger buffer of one rank; bus = algorithm bandwidth × 2(n-1)/n for AllReduce, (n-1)/n for "
         "AllGather, "
         "ReduceScatter, AllToAll, Gather, Scatter, 1 else (the convention of nccl-tests)",
         "total = device time; what one group launches together is shared out by bytes; expected = at the best bus "
         "bandwidth that this "
         "communicator reached in any row"},
    .fill = fill_comm,
    .of_all_devices = true,
};

}  // namespace gputrace
