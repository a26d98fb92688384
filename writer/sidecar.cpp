#include "writer/sidecar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/collect_parts.h"
#include "writer/confine.h"
#include "writer/untraced.h"

namespace gputrace {
namespace {

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kShortestPause = kMillisecond / 2, kLongestPause = 20 * kMillisecond;
constexpr Nanos kPauseWhenOver = 250 * kMillisecond;    // the window is over: nothing comes any more
constexpr Nanos kScanAfterEnd = 30'000 * kMillisecond;  // for machine code that is still to be read then
constexpr Nanos kRunPatience =
    1000 * kMillisecond;  // until `run` has said how the program ended: it waits for us longer
// Until another parent has asked for it, where we may not see it before: launchers do so a few times a second; where the parent ends, that is at once.
constexpr Nanos kParentPatience = 1000 * kMillisecond;
constexpr double kMostHeld = 0.125;                     // of the ring's blocks, until their records are written
constexpr Nanos kLookAtUserEvery = 20 * kMillisecond;   // some 15 us each
constexpr Nanos kCountEvery = 2 * kMillisecond;         // counters in their place in the file
constexpr Nanos kCheckpointEvery = 500 * kMillisecond;  // what is older than a second is in the file

// "8f3a0b12-..." → 16 bytes; zeros where it is no UUID.
void parse_boot_id(const std::string& text, u8 (&id)[16]) {
  u32 digits = 0;
  for (char c : text) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;
    if (digits == 32) return;
    id[digits / 2] = static_cast<u8>(id[digits / 2] << 4 | value);
    ++digits;
  }
}

// Whether a part of GPUTRACE_COLLECT is in effect.
bool collects(const InfoLines& info, u32 part) {
  const std::string_view list = find_info(info, "option.collect");
  return collect::parts_in_effect(list.data(), list.size()) & part;
}

std::string utc_now() { return format_utc(realtime_nanos()); }

}  // namespace

FileHeader file_header(const SegmentHeader& segment) {
  FileHeader header{};
  header.random_id = segment.random_id;
  header.start_time = segment.start_time;
  header.pid_namespace = segment.pid_namespace;
  header.pid = segment.pid;
  header.clock = segment.clock;
  parse_boot_id(boot_id(), header.boot_id);
  return header;
}

Sidecar::Sidecar(Fd segment, Fd process, Environment environment, char** variables)
    : segment_fd_(std::move(segment)),
      process_fd_(std::move(process)),
      environment_(std::move(environment)),
      variables_(variables),
      log_(parse_log_level(environment_("GPUTRACE_LOG"))),
      notes_(environment_) {}

int Sidecar::run() {
  auto segment = SegmentView::map(segment_fd_.get());
  if (!segment) return 1;
  clock_ = segment.value().header().clock;
  if (!Consumer::acquire(segment.value(), ::getpid())) return 1;  // somebody drains it already
  begin(segment.value());
  const ProcessWatch::State how = follow();
  finish(how);
  return 0;
}

// Opens what there is to open, and writes into the file whom it is about.
void Sidecar::begin(const SegmentView& segment) {
  info_ = parse_info(segment.info_text());
  redact_info(info_);
  names_ = name_output(info_, segment.header(), environment_);
  run_started_it_ = notes_.started(segment.header().pid);
  open_trace(segment);
  start_scanner(segment);
  consumer_ = std::make_unique<Consumer>(segment, watch_code_ ? static_cast<RecordSink&>(*watch_code_) : *sink_);
  open_ring_file();
  watch_ = std::make_unique<ProcessWatch>(std::move(process_fd_), segment.header().pid, segment.header().start_time,
                                          segment_fd_.get());
  if (sink_->writer() && collects(info_, collect::kPython)) {
    tree_ = std::make_unique<ProcessTree>(segment.header().pid);
    sampler_ = Sampler::make(segment, info_, *tree_, environment_, *sink_);
    thread_watch_ = std::make_unique<ThreadWatch>(segment.header().pid, *tree_, clock_, *sink_);
    for (std::string& folder : package_folders(environment_("PYTHONPATH")))
      info_.emplace_back("python_packages", std::move(folder));
  }
  if (sink_->writer() && segment.host_table())
    host_table_ = std::make_unique<HostTableWatch>(consumer_->segment(), *sink_);
  (void)!::chdir("/");
  confine(ring_directory_.get(), sampler_ != nullptr);
  sink_->add_schema(segment.schema_text());
  add_host_info(info_, segment.header(), names_, environment_, variables_);
  info_.emplace_back("output", trace_path_);
  sink_->add_info(format_info(info_));
  sink_->add_anchor(segment.header().anchor);
  sink_->add_anchor(take_anchor(clock_));
}

// A ring in a file outlives program and sidecar: blocks are kept there until their records are in the trace, and the file is removed
// at the end.
void Sidecar::open_ring_file() {
  const std::string path(find_info(info_, "ring_file"));
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  consumer_->hold_blocks();
  ring_directory_.reset(::open(path.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ring_name_ = path.substr(slash + 1);
}

void Sidecar::remove_ring_file() {
  struct stat named {
  }, ours{};
  if (!ring_directory_ || ::fstat(segment_fd_.get(), &ours) != 0 ||
      ::fstatat(ring_directory_.get(), ring_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      named.st_ino != ours.st_ino)
    return;
  (void)::unlinkat(ring_directory_.get(), ring_name_.c_str(), 0);
}

// Machine code is read by a process of its own, if it is wanted and there is a file for its answers.
void Sidecar::start_scanner(const SegmentView& segment) {
  if (!sink_->writer() || !collects(info_, collect::kCode)) return;
  segment.keep_from_children();
  scanner_ = std::make_unique<CodeScanner>();
  if (!scanner_->start()) {
    log_.error(std::string("machine code is not read: ") + std::strerror(errno), "");
    info_.emplace_back("not_collected", "code: no process could be started to read it");
    scanner_.reset();
    return;
  }
  watch_code_ = std::make_unique<CodeWatch>(*sink_, *scanner_);
}

void Sidecar::take_scan(const RecordHeader& record) {
  alignas(8) u8 copy[std::max(sizeof(CodeKernel), sizeof(CodeScan))];
  if (record.size > sizeof copy) return;
  std::memcpy(copy, &record, record.size);
  auto& header = *reinterpret_cast<RecordHeader*>(copy);
  header.begin = header.end = ticks_of(clock_);
  sink_->add_record(header);
}

bool Sidecar::open_trace(const SegmentView& segment) {
  auto opened = open_output(environment_("GPUTRACE_OUTPUT"), names_, environment_);
  if (!opened) {
    sink_ = std::make_unique<TraceSink>(std::nullopt);
    segment.control().consumer_state.store(static_cast<u32>(ConsumerState::NotWriting), std::memory_order_relaxed);
    say_unwritable(opened.error());
    return false;
  }
  directory_ = std::move(opened).value();
  if (directory_.shared) info_.emplace_back("shared_directory", "1");
  u64 limit = kDefaultMaxSize;
  const std::string limit_text = environment_("GPUTRACE_MAX_SIZE");
  if (const u64 asked = parse_bytes(limit_text))
    limit = asked;
  else if (!limit_text.empty())
    info_.emplace_back("option_warning", "GPUTRACE_MAX_SIZE=" + limit_text +
                                             " cannot be used (expected a size such as 10G); 10G is used");
  int error = 0;
  for (u32 attempt = 0; attempt < 16; ++attempt) {
    const std::string name = trace_name(names_);
    log_.put_into(directory_.fd.get(), name + ".log");
    auto writer = TraceWriter::create(directory_.fd.get(), name + ".gtrace", file_header(segment.header()), limit);
    if (writer) {
      (void)writer.value().begin_counters();
      trace_path_ = directory_.path + "/" + name + ".gtrace";
      char(&told)[sizeof SegmentControl::trace] = segment.control().trace;
      if (trace_path_.size() < sizeof told) std::memcpy(told, trace_path_.c_str(), trace_path_.size() + 1);
      sink_ = std::make_unique<TraceSink>(std::move(writer).value());
      log_.info("writing " + trace_path_);
      return true;
    }
    error = writer.error();
    if (error != EEXIST) break;
    names_.random_id += 0x9e3779b97f4a7c15ull;  // another one has that name
  }
  sink_ = std::make_unique<TraceSink>(std::nullopt);
  segment.control().consumer_state.store(static_cast<u32>(ConsumerState::NotWriting), std::memory_order_relaxed);
  say_unwritable({directory_.path + ": " + std::strerror(error) + "; tracing is off, your program continues",
                  "GPUTRACE_OUTPUT=$HOME/gputrace-%j"});
  return false;
}

// There is no trace of this process: into the log, to `run`, and into the directory where that takes a line at least.
void Sidecar::say_unwritable(const OutputError& error) {
  log_.error(error.what, error.fix);
  notes_.untraced(names_.pid, names_.executable, error.what, error.fix);
  if (directory_.fd) write_untraced({names_.pid, names_.executable, error.what, error.fix}, environment_);
}

ProcessWatch::State Sidecar::follow() {
  Nanos pause = kMillisecond;
  Nanos next_checkpoint = monotonic_nanos() + kCheckpointEvery, next_count = 0, next_look = 0;
  while (true) {
    pause = next_pause(pause, consumer_->drain());
    if (consumer_->held() > kMostHeld) write_held();
    if (scanner_) scanner_->exchange([this](const RecordHeader& record) { take_scan(record); });
    say_stop();
    const Nanos now = monotonic_nanos();
    if (now >= next_look) {
      look_at_user();
      next_look = now + kLookAtUserEvery;
    }
    if (now >= next_count) {
      sink_->update_counters(*consumer_, ticks_of(clock_));
      next_count = now + kCountEvery + (monotonic_nanos() - now) * 50;  // with thousands of threads it takes its time
    }
    if (now >= next_checkpoint) {
      next_checkpoint = now + kCheckpointEvery;
      sink_->add_anchor(take_anchor(clock_));
      sink_->checkpoint(*consumer_, ticks_of(clock_), false);
      consumer_->free_held();
    }
    const auto state = wait(pause);
    if (state != ProcessWatch::State::Running) return state;
  }
}

// When something of the program is to be looked at from outside.
Nanos Sidecar::next_look() const {
  Nanos next = std::numeric_limits<Nanos>::max();
  if (tree_ && thread_watch_ && thread_watch_->next() != next) next = tree_->next();
  if (sampler_) next = std::min(next, sampler_->next());
  if (thread_watch_) next = std::min(next, thread_watch_->next());
  if (host_table_) next = std::min(next, host_table_->next());
  return next;
}

void Sidecar::look() {
  const Nanos now = monotonic_nanos();
  if (tree_ && thread_watch_ && tree_->next() <= now) tree_->look();
  if (sampler_ && sampler_->next() <= now) sampler_->look();
  if (thread_watch_ && thread_watch_->next() <= now) thread_watch_->look();
  if (host_table_ && host_table_->next() <= now) host_table_->look();
}

// Until the program is gone, or that long; meanwhile the program is looked at.
ProcessWatch::State Sidecar::wait(Nanos length) {
  const Nanos until = monotonic_nanos() + length;
  while (next_look() <= until) {
    const auto state = watch_->wait(std::max<Nanos>(0, next_look() - monotonic_nanos()));
    if (state != ProcessWatch::State::Running) return state;
    look();
  }
  return watch_->wait(std::max<Nanos>(0, until - monotonic_nanos()));
}

// What the ring's file still holds need not be kept there any longer.
void Sidecar::write_held() {
  sink_->flush();
  consumer_->free_held();
}

// As long a pause as lets the ring fill to about an eighth.
Nanos Sidecar::next_pause(Nanos pause, u64 bytes) const {
  const SegmentHeader& header = consumer_->segment().header();
  const u32 state = consumer_->segment().control().state.load(std::memory_order_relaxed);
  const bool over = state == static_cast<u32>(SessionState::Ended);
  if (over && !bytes) return kPauseWhenOver;
  const u64 ring = u64{header.block_count} * header.block_size;
  if (bytes > ring / 2) return 0;
  if (bytes > ring / 8) return std::max(kShortestPause, pause / 2);
  if (bytes < ring / 32) return std::clamp(pause * 2, kShortestPause, kLongestPause);
  return std::clamp(pause, kShortestPause, kLongestPause);
}

void Sidecar::finish(ProcessWatch::State how) {
  const Nanos gone = monotonic_nanos(), gone_realtime = realtime_nanos();
  // First of all: whoever ended the program may end us too.
  sink_->update_counters(*consumer_, ticks_of(clock_));
  const auto open_calls = consumer_->open_calls();
  consumer_->drain_last();
  if (thread_watch_) thread_watch_->finish();
  if (host_table_) host_table_->look();
  sink_->add_anchor(take_anchor(clock_));
  sink_->flush();
  sink_->add_in_flight(open_calls);
  if (scanner_) scanner_->exchange([this](const RecordHeader& record) { take_scan(record); });
  sink_->checkpoint(*consumer_, ticks_of(clock_), true);
  say_stop();
  EndEntry end = how_it_ended(how);
  end.monotonic_ns = gone, end.realtime_ns = gone_realtime;
  InfoLines last;
  if (const std::string why = why_never_open(); !why.empty()) last.emplace_back("window_never_opened", why);
  last.emplace_back("end_realtime_ns", std::to_string(end.realtime_ns));
  last.emplace_back("end_open_calls", std::to_string(open_calls.size()));
  if (sampler_) {
    const InfoLines samples = sampler_->result();
    last.insert(last.end(), samples.begin(), samples.end());
  }
  if (thread_watch_) {
    const InfoLines threads = thread_watch_->result();
    last.insert(last.end(), threads.begin(), threads.end());
  }
  if (host_table_) {
    const InfoLines counted = host_table_->result();
    last.insert(last.end(), counted.begin(), counted.end());
  }
  if (consumer_->bad_blocks()) last.emplace_back("end_bad_blocks", std::to_string(consumer_->bad_blocks()));
  const std::size_t open_images = scanner_ ? scanner_->open() : 0;
  if (open_images) last.emplace_back("end_code_open", std::to_string(open_images));
  sink_->add_info(format_info(last));
  sink_->end(end);
  remove_ring_file();
  if (scanner_) {  // everything else is in the file by now: nothing is lost if this is not waited for
    scanner_->finish(monotonic_nanos() + kScanAfterEnd, [this](const RecordHeader& record) { take_scan(record); });
    sink_->add_anchor(take_anchor(clock_));
    sink_->checkpoint(*consumer_, ticks_of(clock_), true);
    if (open_images) sink_->add_info(format_info({{"end_code_open", "0"}}));
  }
  consumer_->release();
  log_.info("done: " + std::to_string(sink_->stored()) + " records in " +
            std::to_string(sink_->writer() ? sink_->writer()->size() : 0) + " bytes");
}

// Why no call was within the window; empty: one may have been.
std::string Sidecar::why_never_open() const {
  const Ticks begin = consumer_->segment().control().window_begin.load(std::memory_order_relaxed);
  if (begin <= ticks_of(clock_)) return {};
  const std::string capture(find_info(info_, "option.capture"));
  if (capture == "profiler-api") return "cudaProfilerStart was not called (GPUTRACE_CAPTURE=profiler-api)";
  if (capture.starts_with("nvtx:"))
    return "the range " + capture.substr(5) + " was not opened (GPUTRACE_CAPTURE=" + capture + ")";
  if (capture.starts_with("steps:")) return "the program made fewer steps than that (GPUTRACE_CAPTURE=" + capture + ")";
  return "the program ended before GPUTRACE_DELAY had passed";
}

// What `run` saw, what the kernel says, or at least whether exit handlers ran.
EndEntry Sidecar::how_it_ended(ProcessWatch::State how) const {
  EndEntry end{};
  if (how == ProcessWatch::State::Executed) {
    end.reason = EndReason::Executed;
    return end;
  }
  const bool exiting = consumer_->segment().control().exiting.load(std::memory_order_relaxed) != 0;
  end.reason = exiting ? EndReason::Exited : EndReason::Vanished;
  end.detail = exiting ? kUnknownCode : 0;
  std::optional<int> status;
  if (run_started_it_) status = notes_.status_of(names_.pid, monotonic_nanos() + kRunPatience);
  if (!status) status = watch_->status(monotonic_nanos() + kParentPatience);
  if (!status) return end;
  end.reason = WIFSIGNALED(*status) ? EndReason::Signalled : EndReason::Exited;
  end.detail = WIFSIGNALED(*status) ? WTERMSIG(*status) : WEXITSTATUS(*status);
  return end;
}

// A process that has given up its user writes no more into a directory of that user's, not through us either: what it still
// does is counted.
void Sidecar::look_at_user() {
  if (user_given_up_) return;
  const std::optional<u32> user = watch_->became();
  if (!user) return;
  user_given_up_ = true;
  consumer_->drain();  // what it did between our last reading and then was still that user's
  if (scanner_) scanner_->finish(monotonic_nanos(), [this](const RecordHeader& record) { take_scan(record); });
  if (watch_code_) watch_code_->stop();
  scanner_.reset();
  thread_watch_.reset();
  host_table_.reset();
  sink_->refuse(DropReason::UserGivenUp);
  consumer_->segment().control().consumer_state.store(static_cast<u32>(ConsumerState::NotWriting),
                                                      std::memory_order_relaxed);
  const std::string what = "the process gave up user " + std::to_string(::geteuid()) + " and is user " +
                           std::to_string(*user) + ", at " + utc_now() + " UTC: nothing that came after is kept";
  sink_->add_info(format_info({{"user_given_up", what}}));
  log_.error(trace_path_ + ": " + what, "");
}

// Says once why writing has stopped: in the file as far as there is room, in the segment and in the log.
void Sidecar::say_stop() {
  if (said_stop_ || !sink_->writer() || sink_->stop() == WriteStop::None) return;
  said_stop_ = true;
  consumer_->segment().control().consumer_state.store(static_cast<u32>(ConsumerState::NotWriting),
                                                      std::memory_order_relaxed);
  const TraceWriter& writer = *sink_->writer();
  std::string what, fix;
  switch (writer.stop()) {
    case WriteStop::SizeLimit:
      what = "size limit reached at " + utc_now() + " UTC after " + std::to_string(writer.size()) + " bytes";
      fix = "GPUTRACE_MAX_SIZE=50G, or GPUTRACE_DURATION=60s to trace less";
      break;
    case WriteStop::DiskFull:
      what = std::string("disk full at ") + utc_now() + " UTC: " + std::strerror(writer.stop_errno());
      fix = "GPUTRACE_OUTPUT=DIR on a larger disk, or GPUTRACE_MAX_SIZE=1G";
      break;
    default:
      what = std::string("writing failed at ") + utc_now() + " UTC: " + std::strerror(writer.stop_errno());
  }
  sink_->add_info(format_info({{"disk_stop", what}}));
  log_.error(trace_path_ + ": " + what + "; what follows is counted, not stored", fix);
}

}  // namespace gputrace
