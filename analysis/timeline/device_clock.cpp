#include "analysis/timeline/device_clock.h"

#include <algorithm>
#include <cmath>

namespace gputrace {
namespace {

constexpr double kRateLimit = 1e-3;          // no oscillator is off by that much: a larger difference is a step
constexpr Nanos kLeastStep = 20'000;         // below that a difference may be noise of the readings
constexpr Nanos kLeastDoubt = 5'000;         // below that it is taken for another rate
constexpr Nanos kPatience = 1'000'000'000;   // a wide reading is not waited out for longer than this
constexpr std::size_t kBaseline = 32;        // knots over which a rate is taken
constexpr Nanos kUnitBaseline = 50'000'000;  // over which the unit of a client's clock is taken

Nanos scaled(u64 length, double rate) {
  if (rate == 1) return static_cast<Nanos>(length);
  // Of a time on another clock it may be anything.
  return static_cast<Nanos>(std::llround(std::min(static_cast<double>(length) * rate, 4e18)));
}

Nanos shift_of(u64 device, Nanos host) { return static_cast<Nanos>(static_cast<u64>(host) - device); }

}  // namespace

void DeviceTimeline::begin_epoch(u64 device, Nanos before, Nanos after) {
  const Nanos error = (after - before + 1) / 2;
  if (doubted_) worst_ = std::max(worst_, doubt_);
  doubted_ = 0;
  shiftable_ = false;
  epoch_ = knots_.size();
  knots_.push_back({device, before + (after - before) / 2, error, 0, rate_, true});
  worst_ = std::max(worst_, error);
}

// A client's clock: its unit is what its first readings say.
bool DeviceTimeline::learns_unit() const {
  return foreign_ && knots_.back().host - knots_[epoch_].host < kUnitBaseline;
}

void DeviceTimeline::add(u64 device, Nanos before, Nanos after, Nanos likely, bool foreign) {
  ++readings_;
  even_ = {};
  if (after < before) return;
  const Nanos middle = before + (after - before) / 2;
  if (foreign != foreign_) {
    if (!knots_.empty() && before < knots_.back().host - knots_.back().error) return;
    foreign_ = foreign;
    rate_ = unit_ = foreign ? 0 : 1;
    return begin_epoch(device, before, after);
  }
  if (knots_.empty()) {
    Nanos host = middle;
    if (likely >= before && likely <= after) host = likely;
    if (static_cast<Nanos>(device) >= before && static_cast<Nanos>(device) <= after) host = static_cast<Nanos>(device);
    const Nanos error = std::max(host - before, after - host);
    knots_.push_back({device, host, error, 0, 1, true});
    worst_ = error;
    shiftable_ = !foreign;
    least_shift_ = shift_of(device, before), most_shift_ = shift_of(device, after);
    return;
  }
  if (before < knots_.back().host - knots_.back().error) return;  // not in the order of time: a reading of no use
  if (device <= knots_.back().device) {
    if (before <= knots_.back().host + knots_.back().error && device == knots_.back().device) return;
    ++restarts_;
    return begin_epoch(device, before, after);
  }
  follow(device, before, after);
}

void DeviceTimeline::learn_unit(u64 device, Nanos before, Nanos after) {
  const Nanos host = before + (after - before) / 2, error = (after - before + 1) / 2;
  if (host <= knots_.back().host) return;
  const Knot& first = knots_[epoch_];
  rate_ = unit_ = static_cast<double>(host - first.host) / static_cast<double>(device - first.device);
  for (std::size_t i = epoch_; i < knots_.size(); ++i) knots_[i].rate = rate_;
  worst_ = std::max(worst_, error);
  knots_.push_back({device, host, error, 0, rate_, false});
}

// Whether the newest knot's rate or the one before it leads to this reading: the other explanation goes. A reading so soon that they
// lead less far apart than it and the knot are known tells nothing.
void DeviceTimeline::settle_doubt(u64 device, Nanos before, Nanos after) {
  const Knot& last = knots_.back();
  const Nanos after_jump = last.host + scaled(device - last.device, rate_before_);
  const Nanos at_rate = last.host + scaled(device - last.device, rate_);
  if (std::abs(after_jump - at_rate) <= after - before + last.error) return;
  const auto outside = [&](Nanos predicted) {
    return predicted < before ? before - predicted : std::max<Nanos>(0, predicted - after);
  };
  const Nanos by_jump = outside(after_jump), by_rate = outside(at_rate);
  if (by_jump == by_rate) return;
  if (by_jump < by_rate) {
    rate_ = rate_before_;
    knots_.back().rate = rate_;
    ++steps_;
    largest_step_ = std::max(largest_step_, doubt_);
  } else {
    knots_[doubted_].step = 0;
  }
  doubted_ = 0;
}

// The first reading's window may have been wide: the middle of it is no reason to take the clock for one of another rate.
void DeviceTimeline::shift_into(u64 device, Nanos before, Nanos after) {
  least_shift_ = std::max(least_shift_, shift_of(device, before));
  most_shift_ = std::min(most_shift_, shift_of(device, after));
  shiftable_ = least_shift_ <= most_shift_;
  if (!shiftable_) return;
  const Nanos now = shift_of(knots_[0].device, knots_[0].host);
  const Nanos by = std::clamp(now, least_shift_, most_shift_) - now;
  if (by == 0) return;
  for (Knot& knot : knots_) knot.host += by, knot.error += std::abs(by), worst_ = std::max(worst_, knot.error);
}

void DeviceTimeline::follow(u64 device, Nanos before, Nanos after) {
  if (doubted_) settle_doubt(device, before, after);
  if (shiftable_) shift_into(device, before, after);
  const Knot& last = knots_.back();
  const u64 passed = device - last.device;
  if (learns_unit()) return learn_unit(device, before, after);
  const Nanos predicted = last.host + scaled(passed, rate_);
  const Nanos width = after - before;
  const bool inside = predicted >= before && predicted <= after;
  if (inside && width > 4 * last.error + 2000 && before - last.host < kPatience) return;  // says less than is known
  const Nanos middle = before + width / 2;
  const Nanos off = predicted < before ? before - predicted : predicted > after ? predicted - after : 0;
  const Nanos allowed =
      std::max<Nanos>(kLeastStep, static_cast<Nanos>(kRateLimit * unit_ * static_cast<double>(passed))) + last.error +
      width;
  Knot made{device, predicted, std::max(predicted - before, after - predicted), 0, rate_, false};
  if (off > allowed) {
    ++steps_;
    made.host = std::max(middle, last.host);
    made.error = (width + 1) / 2;
    made.step = predicted < before ? middle - predicted : predicted - middle;
    largest_step_ = std::max(largest_step_, made.step);
  } else if (!inside) {
    made.host = std::max(predicted < before ? before : after, last.host);
    const bool large = off > kLeastDoubt + width + last.error;
    made.error = width;
    // Which of two rates it is is still open: from a knot that is that near no third one is taken.
    if (doubted_ && !large) return keep(made);
    // The rate over as long a baseline as there was no jump in. What the knots between are off that line is noise of
    // the readings: times have it too.
    std::size_t first = knots_.size() - 1;
    while (first > 0 && !knots_[first].epoch && knots_[first].step == 0 && knots_.size() - first < kBaseline) --first;
    const Knot& base = knots_[first];
    const double rate = static_cast<double>(made.host - base.host) / static_cast<double>(device - base.device);
    rate_before_ = rate_;
    rate_ = std::clamp(rate, unit_ * (1 - kRateLimit), unit_ * (1 + kRateLimit));
    made.rate = rate_;
    Nanos noise = 0;
    for (std::size_t i = first + 1; i < knots_.size(); ++i)
      noise = std::max(noise, std::abs(base.host + scaled(knots_[i].device - base.device, rate) - knots_[i].host));
    if (large) {
      if (doubted_) worst_ = std::max(worst_, doubt_);  // nothing settles that one any more
      made.step = doubt_ = off + width;                 // what a wrong rate leaves over is in the doubt
      doubted_ = knots_.size();
    } else {
      made.error += noise;
    }
  }
  keep(made);
}

void DeviceTimeline::keep(const Knot& made) {
  worst_ = std::max(worst_, made.error);
  knots_.push_back(made);
}

// The knot before `device`, or the first of its epoch. An epoch may have begun as early as the last knot of the one
// before it, and none of its times lies after the record was handled.
std::size_t DeviceTimeline::find(u64 device, Nanos handled) const {
  std::size_t end = knots_.size();
  for (;;) {
    std::size_t first = epoch_ == 0 ? 0 : end - 1;
    while (!knots_[first].epoch) --first;
    const Knot& begin = knots_[first];
    if (first > 0) {
      const Nanos reach = begin.host - knots_[first - 1].host + begin.error;
      const bool before = device < begin.device && scaled(begin.device - device, begin.rate) > reach;
      const bool after =
          device > begin.device && begin.host + scaled(device - begin.device, begin.rate) > handled + begin.error;
      if (before || after) {
        end = first;
        continue;
      }
    }
    const auto from = knots_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto after = std::upper_bound(from, knots_.begin() + static_cast<std::ptrdiff_t>(end), device,
                                        [](u64 time, const Knot& knot) { return time < knot.device; });
    return after == from ? first : static_cast<std::size_t>(after - knots_.begin()) - 1;
  }
}

Nanos DeviceTimeline::at(std::size_t index, u64 device) {
  const Knot& knot = knots_[index];
  here_ = knot.error;
  jumped_here_ = false;
  if (device < knot.device) return knot.host - scaled(knot.device - device, knot.rate);
  const u64 passed = device - knot.device;
  if (index + 1 == knots_.size() || knots_[index + 1].epoch) return knot.host + scaled(passed, knot.rate);
  const Knot& next = knots_[index + 1];
  here_ = std::max(knot.error, next.error) + next.step;
  jumped_here_ = next.step != 0;
  const u64 between = next.device - knot.device;
  const Nanos host = next.host - knot.host;
  if (static_cast<u64>(host) == between) {
    if (epoch_ == 0 && next.step == 0 && knot.rate != 0)
      even_ = {knot.device, between, knot.host, here_, knot.rate == 1};
    return knot.host + static_cast<Nanos>(passed);
  }
  return knot.host + scaled(passed, static_cast<double>(host) / static_cast<double>(between));
}

Nanos DeviceTimeline::look_up(u64 device, Nanos handled) {
  even_ = {};  // it is of the knot that was used last
  shiftable_ = false;
  if (knots_.empty()) return static_cast<Nanos>(device);
  const bool hinted =
      epoch_ == 0 && hint_ + 1 < knots_.size() && device >= knots_[hint_].device && device < knots_[hint_ + 1].device;
  if (!hinted) hint_ = find(device, handled);
  sure_here_ = knots_[hint_].rate != 0;
  return at(hint_, device);
}

Nanos DeviceTimeline::scaled_length(u64 length) const {
  return scaled(length, hint_ < knots_.size() ? knots_[hint_].rate : 1);
}

}  // namespace gputrace
