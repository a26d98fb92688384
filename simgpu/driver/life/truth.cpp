#include "simgpu/driver/life/truth.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "simgpu/driver/life/knobs.h"

namespace simgpu {

namespace {

std::string truth_path() {
  std::string path = knobs().truth;
  for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at)) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  return path;
}

constexpr int kLowestFile = 200;  // out of the way of programs that count on low descriptors

int open_truth() {
  const int low = open(truth_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (low < 0) return -1;
  const int high = fcntl(low, F_DUPFD_CLOEXEC, kLowestFile);
  if (high < 0) return low;
  close(low);
  return high;
}

// The file of a process: its pid and the descriptor in one word, so that the child of a fork opens its own. No lock: a
// child may be forked while another thread writes.
constinit std::atomic<uint64_t> truth_file{0};

int file_of_process(bool reopen) {
  const auto pid = static_cast<uint64_t>(getpid());
  uint64_t known = truth_file.load(std::memory_order_acquire);
  if (known >> 32 == pid && !reopen) return static_cast<int>(known & 0xffffffff) - 1;
  const int file = open_truth();
  if (truth_file.compare_exchange_strong(known, pid << 32 | static_cast<uint64_t>(file + 1))) return file;
  if (file >= 0) close(file);
  return static_cast<int>(known & 0xffffffff) - 1;
}

void append_line(const std::string& line) {
  const int saved_errno = errno;
  const int file = file_of_process(false);
  if (file >= 0 && write(file, line.data(), line.size()) < 0 && errno == EBADF) {
    // A program that closes all its descriptors closed this one.
    const int again = file_of_process(true);
    if (again >= 0 && write(again, line.data(), line.size()) < 0) truth_file.store(0);
  }
  errno = saved_errno;
}

void append_escaped(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

bool truth_on() { return !knobs().truth.empty(); }

TruthFields::TruthFields(const char* op) {
  text_ = "{\"op\":";
  append_escaped(text_, op);
}

void TruthFields::key(const char* name) {
  text_ += ",\"";
  text_ += name;
  text_ += "\":";
}

TruthFields& TruthFields::add(const char* name, uint64_t value) {
  key(name);
  text_ += std::to_string(value);
  return *this;
}

TruthFields& TruthFields::add(const char* name, int64_t value) {
  key(name);
  text_ += std::to_string(value);
  return *this;
}

TruthFields& TruthFields::add(const char* name, std::string_view text) {
  key(name);
  append_escaped(text_, text);
  return *this;
}

TruthFields& TruthFields::null(const char* name) { return raw(name, "null"); }

TruthFields& TruthFields::raw(const char* name, std::string_view json) {
  key(name);
  text_ += json;
  return *this;
}

CallStamp::CallStamp(const char* name, const char* variant, uint64_t seq, Nanos begin)
    : name_(name),
      variant_(variant),
      seq_(seq),
      begin_(begin),
      pid_(getpid()),
      tid_(static_cast<int>(syscall(SYS_gettid))) {}

CallStamp::~CallStamp() {
  if (finished_ && promised_ && !written_ && knobs().truth_calls) write(TruthFields("call").text());
}

void CallStamp::add(const TruthFields& fields) {
  std::lock_guard lock(mutex_);
  if (finished_) {
    write(fields.text());
  } else {
    waiting_.push_back(fields.text());
  }
}

void CallStamp::promise() {
  std::lock_guard lock(mutex_);
  promised_ = true;
}

void CallStamp::finish(int result, Nanos end) {
  std::lock_guard lock(mutex_);
  finished_ = true;
  result_ = result;
  end_ = end;
  const bool bare = waiting_.empty() && !promised_;
  if (result != 0 || (bare && knobs().truth_calls)) write(TruthFields("call").text());
  if (result != 0) return;
  for (const std::string& fields : waiting_) write(fields);
  waiting_.clear();
}

void CallStamp::write(const std::string& fields) {
  written_ = true;
  char common[512];
  std::snprintf(common, sizeof common,
                ",\"pid\":%d,\"tid\":%d,\"call\":\"%s\",\"variant\":\"%s\",\"result\":%d,\"call_begin_ns\":%" PRIu64
                ",\"call_end_ns\":%" PRIu64 ",\"seq\":%" PRIu64 "}\n",
                pid_, tid_, name_, variant_, result_, begin_, end_, seq_);
  append_line(fields + common);
}

}  // namespace simgpu
