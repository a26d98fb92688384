#include "analysis/pass/nvtx_ranges.h"

#include <algorithm>
#include <iterator>

namespace gputrace {
namespace {

constexpr std::size_t kMostNames = 64u << 10;  // different ranges; those beyond count as one

}  // namespace

NvtxRanges::Open NvtxRanges::begin(const Nvtx& value, u32 thread, Nanos at, bool counted, bool pushed) {
  Open open;
  open.begin = at;
  open.domain = value.domain;
  open.began_before = value.flags & kNvtxOpenBefore;
  if (!counted) return open;
  const std::pair key(value.message, value.domain);
  const auto known = totals_.find(key);
  if (known != totals_.end()) {
    open.totals = known->second;
  } else if (facts_.nvtx.size() <= kMostNames) {
    const bool rest = facts_.nvtx.size() == kMostNames;
    open.totals = static_cast<u32>(facts_.nvtx.size());
    NvtxRangeTotals& made = facts_.nvtx.emplace_back();
    made.range = rest ? kOtherRanges : std::string(texts_.find(value.message));
    if (!rest) made.domain = std::string(texts_.find(value.domain));
    totals_.emplace(key, open.totals);
  } else {
    open.totals = kMostNames;
  }
  NvtxRangeTotals& totals = facts_.nvtx[open.totals];
  totals.pushed |= pushed;
  ++totals.unended;
  LoopLog& loop = facts_.loop_log;
  if (loop.ranges.size() == LoopLog::kMostRanges) {
    ++loop.ranges_left_out;
  } else if (!open.began_before && open.totals != kMostNames) {
    if (loop.names.size() <= open.totals) loop.names.resize(open.totals + 1u);
    loop.names[open.totals] = totals.range;
    open.range = static_cast<u32>(loop.ranges.size());
    loop.ranges.push_back({at, 0, open.totals, thread});
  }
  return open;
}

void NvtxRanges::end(const Open& open, Nanos at) {
  if (open.totals == kNone || open.began_before) return;
  NvtxRangeTotals& totals = facts_.nvtx[open.totals];
  --totals.unended;
  ++totals.count;
  totals.total_ns += static_cast<u64>(std::max<Nanos>(0, at - open.begin));
  if (open.range != kNone) facts_.loop_log.ranges[open.range].end = at;
}

void NvtxRanges::add(const Nvtx& value, u32 thread, Nanos at, bool counted) {
  switch (static_cast<NvtxAct>(value.what)) {
    case NvtxAct::Push:
      return open_[thread].push_back(begin(value, thread, at, counted, true));
    case NvtxAct::Pop: {
      std::vector<Open>& pushed = open_[thread];
      const auto popped = std::find_if(pushed.rbegin(), pushed.rend(),
                                       [&value](const Open& open) { return open.domain == value.domain; });
      if (popped == pushed.rend()) return;
      end(*popped, at);
      pushed.erase(std::next(popped).base());
      return;
    }
    case NvtxAct::Start:
      started_[value.range] = begin(value, thread, at, counted, false);
      return;
    case NvtxAct::End:
      if (const auto known = started_.find(value.range); known != started_.end()) {
        end(known->second, at);
        started_.erase(known);
      }
      return;
    default:
      return;
  }
}

}  // namespace gputrace
