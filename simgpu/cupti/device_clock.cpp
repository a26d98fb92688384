#include "simgpu/cupti/device_clock.h"

#include <algorithm>
#include <cmath>
#include <ctime>

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

}  // namespace

uint64_t device_time(Nanos host) {
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

uint64_t device_now() { return device_time(now_ns()); }

uint64_t device_stamp(Nanos host, uint64_t record, unsigned which) {
  const uint64_t time = device_time(host);
  const uint64_t jitter = knobs().jitter;
  if (jitter == 0) return time;
  return time - jitter + mix(record * 4 + which) % (2 * jitter + 1);
}

}  // namespace simgpu::cupti
