// How much the sidecar drains: the real producer writes kernel launches at a given rate, on one thread, into a ring of
// its own, beside the real sidecar. Prints one JSON object.
//   drain SIDECAR OUTPUT_DIR RECORDS_PER_SECOND SECONDS [RING_BYTES] [same-core]       rate 0: as fast as it can
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ringbuf/producer.h"
#include "ringbuf/segment_create.h"

using namespace gputrace;

namespace {

std::vector<SlotLedger> ledgers;

int make_segment(Bytes budget) {
  const std::string info = "executable\tdrain\n";
  SegmentRequest request;
  request.budget = budget;
  request.clock = detect_clock();
  request.info = info.data();
  request.info_size = info.size();
  request.random_id = static_cast<u64>(realtime_nanos());
  request.pid = ::getpid();
  CreatedSegment created;
  if (create_segment(request, created)) return -1;
  ledgers.assign(created.header->slot_count, {});
  adopt_segment(created.base, ledgers.data());
  gate.generation.store(kFirstGeneration);
  return created.fd;
}

// A launch as a training loop makes them: some forty kernels, two streams, a few shapes.
void emit_launch(u64 number, Ticks now) {
  ThreadState& thread = thread_state;
  if (thread.generation != kFirstGeneration) join_session(kFirstGeneration);
  char* at = reserve(thread, sizeof(KernelLaunch), now);
  if (!at) return;
  KernelLaunch& launch = *reinterpret_cast<KernelLaunch*>(at);
  static u64 random = 88172645463325252ull;
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  const u32 kernel = number % 3 ? static_cast<u32>(number % 40) : static_cast<u32>(random % 40);
  launch = {};
  // The call took some 2 us, as calls of a real driver do; the ticks of this loop alone would be too regular.
  launch.header = {static_cast<u16>(RecordType::KernelLaunch), sizeof launch, 33, 0, now,
                   now + 4000 + (random >> 20) % 2000};
  launch.function = 0x55a000000000 + kernel * 272;
  launch.stream = 0x55b012345670 + (number & 1) * 800;
  launch.context = 0x55c000001230;
  launch.grid_x = 64 * (1 + kernel % 9);
  launch.block_x = 256;
  launch.grid_y = launch.grid_z = launch.block_y = launch.block_z = 1;
  commit(thread, at, sizeof launch, kFirstGeneration);
}

void emit_at_rate(double rate, double seconds) {
  const Nanos begin = monotonic_nanos(), end = begin + static_cast<Nanos>(seconds * 1e9);
  u64 number = 0;
  for (Nanos now = begin; now < end; now = monotonic_nanos()) {
    const u64 due = rate > 0 ? static_cast<u64>(static_cast<double>(now - begin) * 1e-9 * rate) : number + 1000;
    for (; number < due; ++number) emit_launch(number, record_ticks());
  }
  leave_session();
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  const double rate = std::atof(arguments[3]), seconds = std::atof(arguments[4]);
  const Bytes ring = count > 5 ? std::strtoull(arguments[5], nullptr, 10) : 64u << 20;
  const bool same_core = count > 6 && !std::strcmp(arguments[6], "same-core");
  const int segment = make_segment(ring);
  if (segment < 0) return 1;
  // The process that is watched is the one that records: a child, so that this one can wait for both.
  const pid_t recorder = ::fork();
  if (recorder == 0) {
    pin(0);
    while (!producer.control->heartbeat.load()) ::usleep(1000);
    emit_at_rate(rate, seconds);
    ::_exit(0);
  }
  producer.header->pid = recorder;
  const int watched = static_cast<int>(::syscall(SYS_pidfd_open, recorder, 0));
  const pid_t sidecar = ::fork();
  if (sidecar == 0) {
    pin(same_core ? 0 : 1);
    ::setenv("GPUTRACE_OUTPUT", arguments[2], 1);
    ::fcntl(segment, F_SETFD, 0);
    ::fcntl(watched, F_SETFD, 0);
    ::execl(arguments[1], arguments[1], "--segment-fd", std::to_string(segment).c_str(), "--process-fd",
            std::to_string(watched).c_str(), nullptr);
    ::_exit(99);
  }
  rusage of_recorder{}, of_sidecar{};
  int status = 0;
  ::wait4(recorder, nullptr, 0, &of_recorder);
  ::wait4(sidecar, &status, 0, &of_sidecar);
  u64 seen = producer.control->retired_seen.load(), dropped = 0;
  for (u32 i = 1; i < producer.slot_count; ++i) {
    seen += producer.slots[i].seen;
    for (u64 each : producer.slots[i].dropped) dropped += each;
  }
  std::printf(
      "{\"records\": %llu, \"dropped\": %llu, \"seconds\": %.3f, \"sidecar_cpu_s\": %.3f, \"sidecar_peak_bytes\": %ld, "
      "\"sidecar_status\": %d}\n",
      static_cast<unsigned long long>(seen), static_cast<unsigned long long>(dropped), seconds,
      seconds_of(of_sidecar.ru_utime) + seconds_of(of_sidecar.ru_stime), of_sidecar.ru_maxrss * 1024, status);
  return 0;
}
