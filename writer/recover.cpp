#include "writer/recover.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "ringbuf/consumer.h"
#include "trace/reader.h"
#include "writer/process_info.h"
#include "writer/sidecar.h"
#include "writer/trace_sink.h"

namespace gputrace {
namespace {

using ThreadKey = std::pair<u32, u32>;  // slot, incarnation

bool is_alive(i32 pid, u64 start_time) {
  const ProcessStat stat = process_stat(pid);
  return stat.known && stat.state != 'Z' && stat.state != 'X' && (!start_time || stat.start_time == start_time);
}

// Its processes are numbers of one PID namespace: seen from another one they say nothing.
bool in_use(const SegmentView& segment) {
  struct stat own {};
  const bool same = ::stat("/proc/self/ns/pid", &own) == 0 && own.st_ino == segment.header().pid_namespace;
  if (!same) return false;
  if (is_alive(segment.header().pid, segment.header().start_time)) return true;
  const i32 consumer = segment.control().consumer_pid.load(std::memory_order_relaxed);
  const bool gone =
      segment.control().consumer_state.load(std::memory_order_relaxed) == static_cast<u32>(ConsumerState::Gone);
  return !gone && consumer > 0 && is_alive(consumer, 0) &&
         read_small_file("/proc/" + std::to_string(consumer) + "/comm") == "gputrace-sideca\n";
}

// Whether this machine still runs as it did then: else its clocks have begun anew.
bool same_boot(const Anchor& then) {
  const Nanos monotonic = monotonic_nanos() - then.monotonic_ns, real = realtime_nanos() - then.realtime_ns;
  return monotonic > 0 && std::abs(real - monotonic) < 2'000'000'000;
}

std::set<ThreadKey> threads_in_ring(const SegmentView& segment) {
  std::set<ThreadKey> threads;
  for (u32 i = 0; i < segment.header().slot_count; ++i) {
    const ThreadSlot& slot = segment.slot(i);
    const u32 state = slot.state.load(std::memory_order_relaxed);
    if (state == static_cast<u32>(SlotState::Live) || state == static_cast<u32>(SlotState::Ended))
      threads.insert({i, slot.incarnation});
  }
  for (u32 i = 0; i < segment.header().block_count; ++i) {
    const BlockState state = block_state(segment.state(i).load(std::memory_order_relaxed));
    if (state != BlockState::Free && state != BlockState::Claimed)
      threads.insert({segment.block(i).slot, segment.block(i).incarnation});
  }
  return threads;
}

// What the trace holds already: those records are not to come again, and are counted.
void take_over(const TraceReader& begun, const SegmentView& segment, Consumer& consumer, TraceSink& sink) {
  const std::set<ThreadKey> in_ring = threads_in_ring(segment);
  HealthEntry gone{};
  for (const ThreadInfo& thread : begun.threads()) {
    const Counters& counters = thread.counters;
    if (in_ring.count({thread.slot, thread.incarnation})) {
      u64 next = 0;
      for (const u32 index : thread.chunks) {
        const RecordChunk& chunk = begun.record_chunks()[index];
        next = std::max(next, chunk.first_record + chunk.record_count);
      }
      consumer.expect(thread.slot, thread.incarnation, next, counters.stored);
      sink.expect(thread.slot, thread.incarnation, next, counters.stored);
      continue;
    }
    gone.seen += counters.seen;
    gone.stored += counters.stored;
    for (u32 i = 0; i < kDropReasons; ++i) gone.dropped[i] += counters.dropped[i];
  }
  sink.count_earlier(gone);
}

struct Begun {
  std::optional<TraceReader> reader;
  std::optional<TraceWriter> writer;
  std::string path, error;
};

Begun open_begun(const std::string& path, const SegmentView& segment) {
  Begun begun;
  begun.path = path;
  auto reader = TraceReader::open(path);
  if (!reader) {
    begun.error = path + ": " + reader.error().message;
  } else if (reader.value().header().random_id != segment.header().random_id) {
    begun.error = path + " is the trace of another process";
  } else {
    begun.reader = std::move(reader).value();
    if (begun.reader->end()) return begun;
    auto writer = TraceWriter::resume(Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)));
    if (writer)
      begun.writer = std::move(writer).value();
    else
      begun.error = path + ": " + std::strerror(writer.error());
  }
  return begun;
}

// The trace that the ring's sidecar says it had begun; empty: it had not come so far, or that trace is no longer there.
std::string begun_by_sidecar(const SegmentView& segment) {
  const char(&told)[sizeof SegmentControl::trace] = segment.control().trace;
  const std::string path(told, ::strnlen(told, sizeof told));
  struct stat about;
  const bool is_there = path.starts_with('/') && path.ends_with(".gtrace") && ::lstat(path.c_str(), &about) == 0 &&
                        S_ISREG(about.st_mode);
  return is_there ? path : std::string();
}

// The sidecar had not come as far as to make one.
Begun make_new(const SegmentView& segment, const Environment& environment) {
  Begun begun;
  InfoLines info = parse_info(segment.info_text());
  redact_info(info);
  const OutputNames names = name_output(info, segment.header(), environment);
  auto directory = open_output(environment("GPUTRACE_OUTPUT"), names, environment);
  if (!directory) {
    begun.error = directory.error().what;
    return begun;
  }
  const std::string name = trace_name(names) + ".gtrace";
  auto writer = TraceWriter::create(directory.value().fd.get(), name, file_header(segment.header()), 0);
  begun.path = directory.value().path + "/" + name;
  if (!writer) {
    begun.error = begun.path + ": " + std::strerror(writer.error());
    return begun;
  }
  begun.writer = std::move(writer).value();
  return begun;
}

// What the sidecar writes at the begin of a trace.
void describe(const SegmentView& segment, const std::string& path, const Environment& environment, TraceSink& sink) {
  InfoLines info = parse_info(segment.info_text());
  redact_info(info);
  const OutputNames names = name_output(info, segment.header(), environment);
  info.emplace_back("host", names.host);
  info.emplace_back("job", names.job);
  info.emplace_back("clock", segment.header().clock == ClockKind::Tsc ? "tsc" : "monotonic");
  info.emplace_back("begin_realtime_ns", std::to_string(segment.header().anchor.realtime_ns));
  info.emplace_back("output", path);
  sink.add_schema(segment.schema_text());
  sink.add_info(format_info(info));
  sink.add_anchor(segment.header().anchor);
}

}  // namespace

Recovered recover_ring(const std::string& ring, const std::string& trace, const Environment& environment) {
  Recovered result;
  const Fd file(::open(ring.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK));
  if (!file) {
    result.error = ring + ": " + std::strerror(errno);
    return result;
  }
  struct stat about;
  if (::fstat(file.get(), &about) == 0 && about.st_size == 0) {
    result.error = ring + " is empty: its program died before it recorded anything; the file may be deleted";
    return result;
  }
  auto segment = SegmentView::map(file.get());
  if (!segment) {
    result.error = ring + " " + segment.error();
    return result;
  }
  if (in_use(segment.value())) {
    result.in_use = true;
    result.error =
        ring + ": the program (pid " + std::to_string(segment.value().header().pid) + ") or its sidecar still runs";
    return result;
  }
  const std::string known = trace.empty() ? begun_by_sidecar(segment.value()) : trace;
  Begun begun = known.empty() ? Begun() : open_begun(known, segment.value());
  // What the ring says need not be so.
  if (known.empty() || (trace.empty() && !begun.error.empty())) begun = make_new(segment.value(), environment);
  result.trace = begun.path;
  result.error = begun.error;
  if (!result.error.empty()) return result;
  result.was_complete = begun.reader && begun.reader->end();
  if (!result.was_complete) {
    TraceSink sink(std::move(begun.writer));
    Consumer consumer(segment.value(), sink);
    if (begun.reader)
      take_over(*begun.reader, segment.value(), consumer, sink);
    else
      describe(segment.value(), begun.path, environment, sink);
    const Anchor& first = segment.value().header().anchor;
    const ClockKind clock = segment.value().header().clock;
    const u64 looked = segment.value().control().heartbeat.load(std::memory_order_relaxed);
    const auto open_calls = consumer.open_calls();
    consumer.drain_last();
    if (same_boot(first)) sink.add_anchor(take_anchor(clock));
    sink.flush();
    sink.add_in_flight(open_calls);
    sink.checkpoint(consumer, same_boot(first) ? ticks_of(clock) : 0, true);
    result.records = sink.stored();
    sink.add_info(format_info({{"recovered", std::to_string(sink.stored()) + " records from " + ring},
                               {"end_open_calls", std::to_string(open_calls.size())}}));
    EndEntry end{};
    end.reason =
        segment.value().control().exiting.load(std::memory_order_relaxed) ? EndReason::Exited : EndReason::Vanished;
    if (end.reason == EndReason::Exited) end.detail = kUnknownCode;
    end.monotonic_ns = static_cast<Nanos>(looked ? looked : static_cast<u64>(first.monotonic_ns));
    end.realtime_ns = first.realtime_ns + (end.monotonic_ns - first.monotonic_ns);
    sink.end(end);
    if (sink.stop() != WriteStop::None) {
      result.error = begun.path + ": " + std::strerror(sink.writer()->stop_errno());
      return result;
    }
  }
  if (::unlink(ring.c_str()) != 0) result.error = ring + ": " + std::strerror(errno);
  return result;
}

}  // namespace gputrace
