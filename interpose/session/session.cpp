#include "interpose/hot/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/mapped_memory.h"
#include "base/own_stack.h"
#include "base/raw_syscall.h"
#include "interpose/calls.h"
#include "interpose/code/code_capture.h"
#include "interpose/definition/facts.h"
#include "interpose/device/device_collection.h"
#include "interpose/host/host_connection.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/lookup/named_variables.h"
#include "interpose/nvtx/nvtx.h"
#include "interpose/ops/operations.h"
#include "interpose/ops/tensor_memory.h"
#include "interpose/record/context_facts.h"
#include "interpose/session/begin_or_not.h"
#include "interpose/session/ring_file.h"
#include "interpose/session/run_notes.h"
#include "interpose/session/sidecar_start.h"
#include "interpose/session/window.h"
#include "interpose/settings/environment.h"
#include "interpose/settings/info_text.h"
#include "interpose/settings/options.h"
#include "interpose/settings/process_facts.h"
#include "interpose/stacks/stacks.h"
#include "ringbuf/segment_create.h"
#include "trace/schema.h"

#ifndef GT_VERSION
#define GT_VERSION "unknown"
#endif

extern "C" __attribute__((weak)) const char* gnu_get_libc_version();

namespace gputrace {
namespace {

constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK, Linux 4.14
constexpr u32 kScratchSize = 256u << 10;
constexpr u32 kInfoCapacity = 96u << 10;

// What must be gone in a child of fork, and what must stay.
struct alignas(4096) Startup {
  std::atomic<u32> state;   // 0 nobody, 1 a thread is at it
  std::atomic<u64> missed;  // calls of other threads meanwhile: seen, not recorded
};
constinit Startup startup{};
constinit u64 next_generation = kFirstGeneration;
constinit u64 previous_random_id = 0;  // of the session that this process, or the parent it was forked from, had before
constinit Options options{};
constinit Reason reason{};          // why there is no session; only the thread that starts
constinit bool no_sidecar = false;  // it was tried
constinit i64 thread_key = -1;
using SetSpecific = int (*)(unsigned, const void*);
constinit SetSpecific set_specific = nullptr;

bool wipe_in_children(void* page, u64 size) {
  return raw_syscall(SYS_madvise, raw_pointer(page), static_cast<long>(size), kWipeOnFork) == 0;
}

// ------------------------------------------------------------------ end of a thread

void thread_ended(void*) {
  nvtx_thread_ended();
  leave_session();
}

// Whose window a range of a thread holds open must know of that thread's end; everywhere else the program keeps all of its keys, and
// ends of threads are found by looking (ringbuf/producer.cpp). A key with a destructor costs no allocation: the first 32 live in the thread
// itself. pthread_* moved between libraries in glibc 2.34, so they are found at run time.
void prepare_thread_end() {
  if (options.capture != CaptureMode::Nvtx) return;
  if (thread_key >= 0) return;  // inherited from before a fork
  auto create = reinterpret_cast<int (*)(unsigned*, void (*)(void*))>(find_libc_function("pthread_key_create"));
  set_specific = reinterpret_cast<SetSpecific>(find_libc_function("pthread_setspecific"));
  unsigned key = 0;
  if (create && set_specific && create(&key, thread_ended) == 0 && key < 32) thread_key = key;
}

void watch_thread_end() {
  if (thread_key >= 0) set_specific(static_cast<unsigned>(thread_key), &thread_key);
}

// ------------------------------------------------------------------ what it says of itself

void describe_process(InfoText& info, char* scratch, u32 capacity, char* executable, u32 executable_capacity) {
  info.add("version", GT_VERSION);
  own_executable(executable, executable_capacity);
  info.add("executable", executable);
  u64 size = read_small_file("/proc/self/cmdline", scratch, capacity);
  if (size && scratch[size - 1] == 0) --size;
  for (u64 i = 0; i < size; ++i) {
    if (scratch[i] == 0) scratch[i] = 0x1f;
  }
  info.add("argv", scratch, size);
  const long cwd = raw_syscall(SYS_getcwd, raw_pointer(scratch), capacity);
  if (cwd > 0) info.add("cwd", scratch);
  if (previous_random_id) info.add_hex("parent_random_id", previous_random_id);
}

// ------------------------------------------------------------------ start

struct Texts {
  char* memory;  // kScratchSize of schema, kInfoCapacity of info, kScratchSize to work in
  char* info;
  char* scratch;
  u32 schema_size;
};
constexpr u64 kTextsSize = 2 * kScratchSize + kInfoCapacity;

bool write_texts(Texts& texts) {
  texts.memory = map_memory<char>(kTextsSize);
  if (!texts.memory) return false;
  texts.info = texts.memory + kScratchSize;
  texts.scratch = texts.info + kInfoCapacity;
  const std::size_t records = write_schema_text(texts.memory, kScratchSize);
  if (records > kScratchSize) return false;
  const std::size_t calls = write_call_schema(texts.memory + records, kScratchSize - records);
  texts.schema_size = static_cast<u32>(records + calls);
  return texts.schema_size <= kScratchSize;
}

int say_no_ring(Bytes budget, int error) {
  reason.what << "the ring of " << budget << " bytes cannot be had: ";
  if (error == EFBIG)
    reason.what << "files may not be that large here (ulimit -f)";
  else
    reason.what << error_word(error);
  reason.fix << (error == ENOMEM || error == EFBIG || error == ENOSPC ? "a smaller GPUTRACE_BUFFER, or a higher limit"
                                                                      : "");
  return error;
}

// Starts the sidecar, if one is wanted. Returns 0 or an errno.
int start_writer(int segment, char* scratch) {
  if (!options.start_sidecar) {
    note_untraced("GPUTRACE_SIDECAR=off: nobody drains the rings", "unset GPUTRACE_SIDECAR");
    producer.stale_ticks = 0;
    return 0;
  }
  const int error = launch_sidecar(options.sidecar, segment, scratch, kScratchSize);
  if (error) {
    reason.what << "gputrace-sidecar could not be started" << (options.sidecar ? " (GPUTRACE_SIDECAR=" : "")
                << (options.sidecar ? options.sidecar : "") << (options.sidecar ? ")" : "") << ": "
                << error_word(error);
    const bool few = error == EMFILE;  // for a ring and a trace; the line in OUTPUT/untraced needs fewer
    reason.fix << (few               ? ""
                   : options.sidecar ? "unset GPUTRACE_SIDECAR"
                                     : "install the whole tree: the sidecar belongs beside the library");
    no_sidecar = !few;
  }
  return error;
}

int adopt(const CreatedSegment& segment) {
  char* ledgers = map_memory<char>(u64{segment.header->slot_count} * sizeof(SlotLedger));
  if (!ledgers) return ENOMEM;
  producer.thread_joined = watch_thread_end;
  adopt_segment(segment.base, reinterpret_cast<SlotLedger*>(ledgers));
  return 0;
}

// Everything between "no session" and "recording". Returns 0, an errno, or -1: not wanted here.
int start_with(Texts& texts) {
  InfoText info(texts.info, kInfoCapacity);
  char executable[1024];
  describe_process(info, texts.scratch, kScratchSize, executable, sizeof executable);
  options = read_options(info);
  gate.libraries.store(options.collect_libraries ? kLibrariesOn : kLibrariesOff, std::memory_order_relaxed);
  if (!is_wanted(options, info, executable, texts.scratch, kScratchSize, reason)) return -1;

  describe_nvtx(info, options);
  SegmentRequest request;
  request.budget = choose_budget(options, info, reason);
  if (!request.budget) return ENOMEM;
  reset_stacks({options.collect_python, options.collect_stacks}, info);
  reset_operations(options.collect_operations, info);
  if (options.capture == CaptureMode::Steps && !operations_are_followed()) {
    options.capture = CaptureMode::All;
    info.add(
        "option_warning",
        "GPUTRACE_CAPTURE=steps: nothing tells of steps while this program runs (PyTorch's optimizer would); all is "
        "recorded");
  }
  reset_tensor_memory(options.collect_operations);
  configure_device_collection(options, request.budget);
  request.clock = detect_clock();
  request.on_full = options.on_full;
  request.schema = texts.memory;
  request.schema_size = texts.schema_size;
  request.host_table = wanted_host_table(options, request.budget, info);
  const Identity identity = own_identity();
  RingFile file;
  make_ring_file(options, identity, segment_size(request.budget), file, info);
  request.file = file.fd;
  request.info = info.data();
  request.info_size = info.size();
  request.random_id = identity.random_id;
  request.pid_namespace = identity.pid_namespace;
  request.start_time = identity.start_time;
  request.pid = identity.pid;
  CreatedSegment segment;
  if (const int error = create_segment(request, segment)) {
    remove_ring_file(file);
    return say_no_ring(request.budget, error);
  }
  int error = adopt(segment);
  if (!error && !reset_facts()) error = ENOMEM;
  reset_context_facts();
  if (!error && !reset_code_capture(options.collect_code)) error = ENOMEM;
  if (!error) {
    prepare_thread_end();
    producer.control->first_call.store(producer.session_begin, std::memory_order_relaxed);
    open_window(options, previous_random_id != 0);
    error = start_writer(segment.fd, texts.scratch);
  }
  if (error) remove_ring_file(file);
  // The mapping lives on; a closed descriptor is one that the host cannot stumble over.
  if (!error || segment.fd != request.file) raw_syscall(SYS_close, segment.fd);
  if (error) {
    unmap_memory(segment.base, segment.header->segment_size);
    return error;
  }
  previous_random_id = identity.random_id;
  return 0;
}

// To `run`, where there is one; and into OUTPUT/untraced, where the process was to be traced and could not be. Only the
// sidecar knows where that is.
void say_untraced(int error, const Texts& texts) {
  if (!*reason.what.text()) {
    reason.what << "tracing could not begin: " << error_word(error);
    reason.fix << (error == ENOMEM ? "a smaller GPUTRACE_BUFFER, or a higher limit" : "");
  }
  note_untraced(reason.what.text(), reason.fix.text());
  if (error < 0 || no_sidecar || !options.start_sidecar || !texts.memory) return;
  launch_untraced(options.sidecar, reason.what.text(), reason.fix.text(), texts.scratch, kScratchSize);
}

int start_session() {
  copy_environment();
  if (is_privileged()) return -1;
  if (!is_first_copy()) return -1;
  reason.what.clear();
  reason.fix.clear();
  no_sidecar = false;
  Texts texts{};
  const int error = write_texts(texts) ? start_with(texts) : ENOMEM;
  if (error) say_untraced(error, texts);
  if (texts.memory) unmap_memory(texts.memory, kTextsSize);
  if (!error) note_began();
  return error;
}

// Only the thread that won startup.state gets here.
void start_once() {
  const u64 generation = next_generation++;
  int error = ENOMEM;
  if (is_sandboxed() ||
      !call_on_own_stack([](void* result) { *static_cast<int*>(result) = start_session(); }, &error) || error != 0) {
    gate.libraries.store(kLibrariesOff, std::memory_order_relaxed);
    gate.generation.store(kGateOff, std::memory_order_release);
    return;
  }
  producer.control->unslotted.fetch_add(startup.missed.load(std::memory_order_relaxed), std::memory_order_relaxed);
  gate.generation.store(generation, std::memory_order_release);  // pairs with the acquire in enter_session()
  begin_operations(generation, line_now);
  if (!begin_stacks(generation) && producer.clock == ClockKind::Tsc)
    gate.launch.store(generation, std::memory_order_release);
  connect_host(options);
}

}  // namespace

ErrnoGuard::ErrnoGuard() : saved_(errno) {}
ErrnoGuard::~ErrnoGuard() { errno = saved_; }

bool enter_session() {
  u64 generation = gate.generation.load(std::memory_order_acquire);
  if (generation == kGateOff) return false;
  if (thread_state.busy == kUntraced) return false;
  // Begun in the ring of the process that this one was forked from, by a handler or a callback within the call.
  if (generation == kGateIdle && has_begun(thread_state)) thread_state.busy = 0;
  if (thread_state.busy) {  // a signal handler on top of this thread's own way in
    if (generation >= kFirstGeneration) producer.control->unslotted.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  ErrnoGuard guard;
  if (generation == kGateIdle) {
    // Before the first word is written there: a child forked in between must not find a start that nobody finishes.
    if (!wipe_in_children(&startup, sizeof startup) || !wipe_in_children(&gate, sizeof gate)) {
      gate.generation.store(kGateOff, std::memory_order_release);
      return false;
    }
    u32 nobody = 0;
    if (!startup.state.compare_exchange_strong(nobody, 1, std::memory_order_acq_rel)) {
      generation = gate.generation.load(std::memory_order_acquire);
      if (generation < kFirstGeneration) {
        startup.missed.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    } else {
      start_once();
      generation = gate.generation.load(std::memory_order_acquire);
    }
    if (generation < kFirstGeneration) return false;
  }
  if (thread_state.generation != generation) {
    join_session(generation);
    nvtx_thread_joined(generation);
  }
  return true;
}

}  // namespace gputrace

// The one constructor. No system call (one if the library was named by a relative path), no allocation: every process
// of the tree runs it. Wrappers also work before it. In a program of another C library than glibc nothing is on: musl
// takes our need of libc.so.6 for its own, so the library is loaded there too.
__attribute__((constructor)) static void gputrace_loaded() {
  gputrace::copy_environment();
  gputrace::bind_named_variables();
  const char* enabled = gputrace::copied_variable("GPUTRACE");
  if (!&gnu_get_libc_version || (enabled && enabled[0] == '0' && !enabled[1])) {
    gputrace::gate.libraries.store(gputrace::kLibrariesOff, std::memory_order_relaxed);
    gputrace::gate.generation.store(gputrace::kGateOff, std::memory_order_relaxed);
    return;
  }
  gputrace::nvtx_prepare_environment();
}

// DT_FINI: runs at exit, without a registration that could lock. Only a hint for the sidecar's end_reason.
extern "C" __attribute__((visibility("hidden"))) void gputrace_exiting() {
  using namespace gputrace;
  if (gate_generation() >= kFirstGeneration) producer.control->exiting.store(1, std::memory_order_relaxed);
}
