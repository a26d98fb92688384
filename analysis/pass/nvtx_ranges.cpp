#include "analysis/pass/nvtx_ranges.h"

#include <algorithm>
#include <iterator>

namespace gputrace {
namespace {

constexpr std::size_t kMostNames = 64u << 10;  // different ranges; those beyond count as one

// XLA numbers its programs, and what it says of one it says of all: "XlaCompileBackend:#module=jit_step,program_id=21197#".
std::string without_program(std::string_view text) {
  constexpr std::string_view kKey = ",program_id=";
  const std::size_t from = text.find(kKey);
  if (from == std::string_view::npos) return std::string(text);
  const std::size_t to = std::min(text.find_first_not_of("0123456789", from + kKey.size()), text.size());
  return std::string(text.substr(0, from)) + std::string(text.substr(to));
}

}  // namespace

// The place in ProcessTrace::nvtx of ranges of that name.
u32 NvtxRanges::totals_of(const Nvtx& value) {
  const std::pair key(value.message, value.domain);
  if (const auto known = totals_.find(key); known != totals_.end()) return known->second;
  if (facts_.nvtx.size() > kMostNames) return kMostNames;
  const bool rest = facts_.nvtx.size() == kMostNames;
  const std::string_view domain = texts_.find(value.domain);
  const std::string_view text = texts_.find(value.message);
  std::string name = rest ? kOtherRanges : domain == "TSL" ? without_program(text) : std::string(text);
  u32 place = static_cast<u32>(facts_.nvtx.size());
  if (!rest && name.size() != text.size()) place = of_programs_.emplace(name, place).first->second;
  if (place == facts_.nvtx.size()) {
    NvtxRangeTotals& made = facts_.nvtx.emplace_back();
    made.range = std::move(name);
    if (!rest) made.domain = domain;
  }
  totals_.emplace(key, place);
  return place;
}

NvtxRanges::Open NvtxRanges::begin(const Nvtx& value, u32 thread, Nanos at, bool counted, bool pushed) {
  Open open;
  open.begin = at;
  open.domain = value.domain;
  open.began_before = value.flags & kNvtxOpenBefore;
  if (!counted) return open;
  open.totals = totals_of(value);
  NvtxRangeTotals& totals = facts_.nvtx[open.totals];
  totals.pushed |= pushed, totals.across_threads |= !pushed;
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
