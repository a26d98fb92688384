#include "simgpu/cupti/entry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>

#include "simgpu/cupti/activity.h"
#include "simgpu/cupti/device_clock.h"
#include "simgpu/cupti/knobs.h"
#include "simgpu/missing/missing.h"

namespace simgpu::cupti {

namespace {

constinit std::atomic<const DriverSide*> the_driver{nullptr};
constinit std::atomic<bool> forked{false};
thread_local CUptiResult last_error = CUPTI_SUCCESS;

void watch_forks() {
  static const int kWatched = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  (void)kWatched;
}

const DriverSide* find_driver() {
  if (const DriverSide* known = the_driver.load(std::memory_order_acquire)) return known;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto attach = reinterpret_cast<decltype(&simgpu_cupti_attach)>(dlsym(library, "simgpu_cupti_attach"));
  dlclose(library);  // the driver is never unloaded
  if (attach == nullptr) return nullptr;
  device_now();  // the clock bends from here on
  const DriverSide* side = attach(&activity_observer());
  the_driver.store(side, std::memory_order_release);
  return side;
}

CUptiResult struck(const char* name) {
  for (CallError& error : knobs().errors) {
    if (error.call == name && error.seen.fetch_add(1) + 1 == error.at) return static_cast<CUptiResult>(error.code);
  }
  return CUPTI_SUCCESS;
}

void be_slow(const char* name) {
  for (const SlowCall& slow : knobs().slow) {
    if (slow.call != name) continue;
    const timespec time{static_cast<time_t>(slow.time / 1'000'000'000), static_cast<long>(slow.time % 1'000'000'000)};
    nanosleep(&time, nullptr);
  }
}

}  // namespace

CUptiResult enter(const char* name, Wants wants) {
  watch_forks();
  if (knobs().off) return CUPTI_ERROR_NOT_INITIALIZED;
  if (const CUptiResult error = struck(name); error != CUPTI_SUCCESS) return error;
  be_slow(name);
  if (wants == Wants::nothing) return CUPTI_SUCCESS;
  if (forked.load() || find_driver() == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  return CUPTI_SUCCESS;
}

CUptiResult leave(const char* name, CUptiResult result) {
  if (result == CUPTI_ERROR_NOT_SUPPORTED) simgpu_missing(SIMGPU_SONAME, name);
  if (result != CUPTI_SUCCESS) last_error = result;
  return result;
}

CUptiResult take_last_error() {
  const CUptiResult error = last_error;
  last_error = CUPTI_SUCCESS;
  return error;
}

const DriverSide* driver() { return the_driver.load(std::memory_order_acquire); }

}  // namespace simgpu::cupti
