#include "trace/clock_map.h"

#include <algorithm>

namespace gputrace {
namespace {

__extension__ typedef __int128 Wide;  // ticks times nanoseconds

constexpr Nanos kMaxTime = Nanos{1} << 61;  // some 73 years: beyond it, an anchor is nonsense
constexpr Ticks kMaxTicks = Ticks{1} << 62;

bool plausible(const Anchor& anchor) {
  return anchor.ticks > 0 && anchor.ticks < kMaxTicks && anchor.monotonic_ns >= 0 && anchor.monotonic_ns < kMaxTime &&
         anchor.realtime_ns > -kMaxTime && anchor.realtime_ns < kMaxTime && anchor.width_ns >= 0 &&
         anchor.width_ns < 1'000'000'000;
}

// Anchors taken while the sidecar was kept from running are wide: those far wider than usual say less than their
// neighbours do.
void drop_wide(std::vector<Anchor>& anchors) {
  if (anchors.size() < 3) return;
  std::vector<Nanos> widths;
  widths.reserve(anchors.size());
  for (const Anchor& anchor : anchors) widths.push_back(anchor.width_ns);
  std::nth_element(widths.begin(), widths.begin() + static_cast<i64>(widths.size() / 2), widths.end());
  const Nanos limit = std::max<Nanos>(2000, 8 * widths[widths.size() / 2]);
  std::vector<Anchor> kept;
  for (std::size_t i = 0; i < anchors.size(); ++i)
    if (anchors[i].width_ns <= limit || i == 0 || i + 1 == anchors.size()) kept.push_back(anchors[i]);
  anchors = std::move(kept);
}

}  // namespace

ClockMap::ClockMap(ClockKind kind, std::vector<Anchor> anchors) : kind_(kind) {
  std::erase_if(anchors, [](const Anchor& anchor) { return !plausible(anchor); });
  std::sort(anchors.begin(), anchors.end(), [](const Anchor& a, const Anchor& b) { return a.ticks < b.ticks; });
  drop_wide(anchors);
  for (const Anchor& anchor : anchors) {
    if (anchors_.empty() ||
        (anchor.ticks > anchors_.back().ticks && anchor.monotonic_ns > anchors_.back().monotonic_ns))
      anchors_.push_back(anchor);
  }
}

bool ClockMap::known() const { return kind_ == ClockKind::Monotonic || anchors_.size() >= 2; }

// Index of the anchor that begins the stretch which `ticks` belongs to; needs two anchors.
std::size_t ClockMap::segment(Ticks ticks) const {
  const auto after = std::upper_bound(anchors_.begin(), anchors_.end(), ticks,
                                      [](Ticks t, const Anchor& anchor) { return t < anchor.ticks; });
  const std::size_t index = static_cast<std::size_t>(after - anchors_.begin());
  return std::min(index ? index - 1 : 0, anchors_.size() - 2);
}

Nanos ClockMap::nanos(Ticks ticks) const {
  if (!known() || kind_ == ClockKind::Monotonic) return static_cast<Nanos>(std::min<Ticks>(ticks, kMaxTime));
  const std::size_t i = segment(ticks);
  const Anchor& a = anchors_[i];
  const Anchor& b = anchors_[i + 1];
  const Wide distance = static_cast<Wide>(ticks) - static_cast<Wide>(a.ticks);
  const Wide product = distance * (b.monotonic_ns - a.monotonic_ns);
  const Wide divisor = static_cast<Wide>(b.ticks - a.ticks);
  const Wide quotient =
      (product >= 0 ? product : product - divisor + 1) / divisor;  // floor: monotone across the anchors
  const Wide value = a.monotonic_ns + quotient;
  return static_cast<Nanos>(std::clamp<Wide>(value, -kMaxTime, kMaxTime));
}

Nanos ClockMap::realtime(Nanos monotonic) const {
  if (anchors_.empty()) return 0;
  const auto after = std::upper_bound(anchors_.begin(), anchors_.end(), monotonic,
                                      [](Nanos t, const Anchor& anchor) { return t < anchor.monotonic_ns; });
  const Anchor& nearest = after == anchors_.begin() ? anchors_.front() : *(after - 1);
  return monotonic + (nearest.realtime_ns - nearest.monotonic_ns);
}

Nanos ClockMap::error_ns(Ticks ticks) const {
  if (kind_ == ClockKind::Monotonic) return 0;
  if (anchors_.size() < 2) return -1;
  const std::size_t i = segment(ticks);
  const Anchor& a = anchors_[i];
  const Anchor& b = anchors_[i + 1];
  const Nanos at_anchor = std::max(a.width_ns, b.width_ns) / 2 + 1;
  if (ticks >= a.ticks && ticks <= b.ticks) return at_anchor;
  const double outside = ticks < a.ticks ? static_cast<double>(a.ticks - ticks) : static_cast<double>(ticks - b.ticks);
  const double widths = static_cast<double>(a.width_ns + b.width_ns) / 2 + 1;
  const double error = static_cast<double>(at_anchor) + outside / static_cast<double>(b.ticks - a.ticks) * widths;
  return static_cast<Nanos>(std::min(error, static_cast<double>(kMaxTime)));
}

Nanos ClockMap::max_error_ns(Ticks begin, Ticks end) const {
  if (kind_ == ClockKind::Monotonic) return 0;
  if (anchors_.size() < 2) return -1;
  Nanos most = std::max(error_ns(begin), error_ns(end));
  for (std::size_t i = segment(begin); i <= segment(end); ++i) most = std::max(most, error_ns(anchors_[i].ticks));
  return most;
}

}  // namespace gputrace
