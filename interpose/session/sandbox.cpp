// A program that puts itself under a seccomp filter after it was loaded forbids system calls that we would make, and a filter
// may kill for each. So it is left alone from then on: tracing ends, or never begins, before the filter is there, and
// nothing of ours makes a system call any more. (A container's filter was there before the program: that is traced.)
//
// What is noticed: prctl(PR_SET_SECCOMP), syscall(SYS_seccomp) and syscall(SYS_prctl) by the names of libc, which pass through here
// (sandbox_x86_64.S). A filter that is added by a raw instruction is not.
#include <atomic>

#include "interpose/device/device_collection.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/session/run_notes.h"
#include "ringbuf/producer.h"

extern "C" {
__attribute__((visibility("hidden"))) void* gputrace_real_prctl = nullptr;  // for the assembler
__attribute__((visibility("hidden"))) void* gputrace_real_syscall = nullptr;
}

namespace gputrace {
namespace {

constinit std::atomic<bool> sandboxed{false};

}  // namespace

bool is_sandboxed() { return sandboxed.load(std::memory_order_relaxed); }

}  // namespace gputrace

using namespace gputrace;

// The first call of either, and each that adds a filter, before it is made.
extern "C" __attribute__((visibility("hidden"))) void gputrace_before_prctl(bool adds_filter) {
  ErrnoGuard guard;
  if (!__atomic_load_n(&gputrace_real_prctl, __ATOMIC_RELAXED)) {
    __atomic_store_n(&gputrace_real_syscall, find_function_after_us("syscall"), __ATOMIC_RELEASE);
    __atomic_store_n(&gputrace_real_prctl, find_function_after_us("prctl"), __ATOMIC_RELEASE);
  }
  if (!adds_filter || sandboxed.exchange(true, std::memory_order_relaxed)) return;
  const u64 generation = gate_generation();
  if (generation == kGateOff) return;
  note_sandboxed();  // the last instant at which a system call may be made
  if (generation >= kFirstGeneration) {
    end_device_collection();
    leave_session();
  }
  gate.launch.store(0, std::memory_order_relaxed);
  gate.libraries.store(kLibrariesOff, std::memory_order_relaxed);
  gate.generation.store(kGateOff, std::memory_order_release);
}
