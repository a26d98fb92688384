// What every call does before and after its body, and the life of the driver in a process.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/life/state.h"
#include "simgpu/driver/observe/observe.h"

namespace simgpu {

namespace {

constinit std::atomic<Mode> nothing_yet{Mode::unknown};
constinit std::atomic<bool> initialized_once{false};  // also true in the child of a process that had initialized
constinit std::atomic<uint64_t> next_sequence{1};
constinit std::atomic<bool> forked{false};

void mark_forked() {
  forked.store(true);
  process_mode.load()->store(Mode::unknown);
}

// The mode lives in a page that the kernel zeroes in the child of a fork, however the fork was made; where that is not
// to be had, the fork handler does it.
std::atomic<Mode>* mode_page() {
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return &nothing_yet;
#ifdef MADV_WIPEONFORK
  madvise(page, bytes, MADV_WIPEONFORK);
#endif
  return new (page) std::atomic<Mode>(Mode::unknown);
}

bool needs_slow_mode() { return looked_at(~0u) || knobs().call_time > 0 || truth_on() || !knobs().faults.empty(); }

// The fault that strikes now, counting this call in every one that names it. What does not end the call is done here.
CUresult strike(const char* name, int* leave_errno) {
  CUresult result = CUDA_SUCCESS;
  for (const Fault& fault : knobs().faults) {
    if (fault.call != name || fault.seen.fetch_add(1) + 1 != fault.at) continue;
    switch (fault.kind) {
      case Fault::Kind::error:
        result = static_cast<CUresult>(fault.value);
        break;
      case Fault::Kind::abort:
        std::abort();
      case Fault::Kind::hang: {
        const Nanos until = now_ns() + static_cast<Nanos>(fault.value) * 1'000'000;
        wait_until(until);
        break;
      }
      case Fault::Kind::set_errno:
        *leave_errno = static_cast<int>(fault.value);
        break;
    }
  }
  return result;
}

}  // namespace

constinit std::atomic<std::atomic<Mode>*> process_mode{&nothing_yet};

constinit thread_local ThreadState thread_state{};

bool process_initialized() { return process_mode.load()->load() != Mode::unknown; }

namespace {
constinit std::mutex life_mutex;
}  // namespace

bool may_be_shown() { return process_initialized() || !initialized_once.load(); }

void process_mode_changed() {
  std::lock_guard lock(life_mutex);
  if (process_initialized()) process_mode.load()->store(needs_slow_mode() ? Mode::slow : Mode::fast);
}

CUresult initialize_process() {
  std::lock_guard lock(life_mutex);
  if (process_initialized()) return CUDA_SUCCESS;
  if (initialized_once.load() || forked.load()) return CUDA_ERROR_NOT_INITIALIZED;  // child of an initialized parent
  if (knobs().devices == 0) return CUDA_ERROR_NO_DEVICE;
  create_devices();
  pthread_atfork(nullptr, nullptr, mark_forked);
  std::atomic<Mode>* page = mode_page();
  page->store(needs_slow_mode() ? Mode::slow : Mode::fast);
  process_mode.store(page, std::memory_order_release);
  initialized_once.store(true);
  return CUDA_SUCCESS;
}

CUresult Call::enter_slow(Need need) {
  slow_ = needs_slow_mode();
  if (slow_) {
    begin_ = now_ns();
    if (truth_on()) stamp_ = std::make_shared<CallStamp>(name_, variant_, next_sequence.fetch_add(1), begin_);
    uint32_t& outer = thread_state.runtime_correlation;
    if (outer == kNotDrawn) outer = draw_correlation();
    const bool shares = outer != 0 && !separate_runtime_ids.load(std::memory_order_relaxed);
    correlation_ = shares ? outer : draw_correlation();
    device_correlation_ = outer != 0 ? outer : correlation_;
    thread_state.call_correlation = correlation_;
    thread_state.call_begin = begin_;
    shown_ = shows_call(variant_, false);
    if (shown_) show_call(*this, true, 0);
    if (CUresult struck = strike(name_, &leave_errno_); struck != CUDA_SUCCESS) return struck;
  }
  if (need == Need::always) return CUDA_SUCCESS;
  if (!process_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (thread_state.in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  return CUDA_SUCCESS;
}

CUresult Call::leave_slow(CUresult result) {
  if (knobs().call_time > 0) spin_until(begin_ + knobs().call_time);
  if (shown_) show_call(*this, false, result);
  if (stamp_) stamp_->finish(result, now_ns());
  if (leave_errno_ != 0) errno = leave_errno_;
  return result;
}

Context* Call::context() {
  Context* context = current_context();
  return context != nullptr && context->active.load(std::memory_order_acquire) ? context : nullptr;
}

CUresult Call::context_error() {
  return current_context() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace simgpu

using namespace simgpu;

SIM_API_ALWAYS(cuInit, "cuInit", (unsigned int flags), (flags)) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return initialize_process();
}

SIM_API_ALWAYS(cuDriverGetVersion, "cuDriverGetVersion", (int* version), (version)) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = knobs().driver;
  return CUDA_SUCCESS;
}
