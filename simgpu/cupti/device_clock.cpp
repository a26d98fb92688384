#include "simgpu/cupti/device_clock.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <mutex>
#include <vector>

#include "simgpu/cupti/knobs.h"

namespace simgpu::cupti {

namespace {

Nanos realtime() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<Nanos>(t.tv_sec) * 1'000'000'000u + static_cast<Nanos>(t.tv_nsec);
}

struct Base {
  Nanos host = 0;      // the first use
  int64_t offset = 0;  // of CUPTI's clock then
};

// The reading whose two sides lie closest together.
Base take_base() {
  Base base;
  base.host = now_ns();
  if (knobs().monotonic) return base;
  Nanos best = ~Nanos{0};
  for (int i = 0; i < 16; ++i) {
    const Nanos before = now_ns();
    const Nanos real = realtime();
    const Nanos after = now_ns();
    if (after - before >= best) continue;
    best = after - before;
    base.offset = static_cast<int64_t>(real) - static_cast<int64_t>(before + best / 2);
  }
  return base;
}

const Base& base() {
  static const Base kBase = take_base();
  return kBase;
}

uint64_t mix(uint64_t x) {  // splitmix64's last step: every bit of the answer depends on every bit of x
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// One moment on both clocks.
struct Reading {
  Nanos host = 0;
  uint64_t client = 0;
};

struct ClientClock {
  std::atomic<CUpti_TimestampCallbackFunc> function{nullptr};
  std::mutex mutex;  // of `readings`; never held while the client's function runs
  std::vector<Reading> readings;
};

ClientClock& client_clock() {
  static auto* const kClock = new ClientClock;  // never destroyed: programs flush from their last destructors
  return *kClock;
}

// The reading whose two sides lie closest together.
Reading read_both(CUpti_TimestampCallbackFunc clock) {
  Reading best;
  Nanos width = ~Nanos{0};
  for (int i = 0; i < 8; ++i) {
    const Nanos before = now_ns();
    const uint64_t client = clock();
    const Nanos after = now_ns();
    if (after - before >= width) continue;
    width = after - before;
    best = {before + width / 2, client};
  }
  return best;
}

// On the line through the two readings around the moment, or through the nearest two.
uint64_t client_time(Nanos host) {
  ClientClock& clock = client_clock();
  std::lock_guard lock(clock.mutex);
  const std::vector<Reading>& readings = clock.readings;
  if (readings.size() < 2) return readings.empty() ? 0 : readings[0].client + (host - readings[0].host);
  auto after =
      std::upper_bound(readings.begin(), readings.end(), host, [](Nanos at, const Reading& r) { return at < r.host; });
  after = std::clamp(after, readings.begin() + 1, readings.end() - 1);
  const Reading& from = *(after - 1);
  const double slope = static_cast<double>(static_cast<int64_t>(after->client - from.client)) /
                       static_cast<double>(after->host - from.host);
  const double passed = static_cast<double>(static_cast<int64_t>(host - from.host)) * slope;
  return from.client + static_cast<uint64_t>(std::llround(passed));
}

}  // namespace

void set_client_clock(CUpti_TimestampCallbackFunc function) {
  ClientClock& clock = client_clock();
  if (clock.function.exchange(function) != function) {
    std::lock_guard lock(clock.mutex);
    clock.readings.clear();
  }
  read_client_clock();
}

void read_client_clock() {
  constexpr size_t kMostReadings = 8192;
  ClientClock& clock = client_clock();
  const CUpti_TimestampCallbackFunc function = clock.function.load();
  if (function == nullptr) return;
  const Reading reading = read_both(function);
  std::lock_guard lock(clock.mutex);
  if (clock.function.load() != function || (!clock.readings.empty() && clock.readings.back().host >= reading.host))
    return;
  if (clock.readings.size() == kMostReadings)
    clock.readings.erase(clock.readings.begin(), clock.readings.begin() + kMostReadings / 2);
  clock.readings.push_back(reading);
}

uint64_t device_time(Nanos host) {
  if (client_clock().function.load(std::memory_order_relaxed) != nullptr) return client_time(host);
  const Base& from = base();
  int64_t passed = static_cast<int64_t>(host) - static_cast<int64_t>(from.host);
  const Knobs& k = knobs();
  const bool stepped = k.step != 0 && passed >= static_cast<int64_t>(k.step_at);
  passed +=
      std::llround(static_cast<double>(passed) * k.skew);  // also before the first use: a kernel may have begun then
  if (stepped) passed += k.step;
  if (k.wrap != 0 && passed > 0) passed %= static_cast<int64_t>(k.wrap);
  return static_cast<uint64_t>(static_cast<int64_t>(from.host) + passed + from.offset);
}

uint64_t device_now() {
  const CUpti_TimestampCallbackFunc client = client_clock().function.load();
  return client != nullptr ? client() : device_time(now_ns());
}

Nanos jittered(Nanos host, uint64_t record, unsigned which) {
  const Nanos jitter = knobs().jitter;
  return jitter == 0 ? host : host - jitter + mix(record * 4 + which) % (2 * jitter + 1);
}

}  // namespace simgpu::cupti
