// The ground truth: one JSON object per line, appended whole lines at a time (O_APPEND, one write each).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/driver/life/clock.h"

namespace simgpu {

bool truth_on();

// The fields of one line beyond those that every line has. Keys are literals; strings are escaped here.
class TruthFields {
 public:
  explicit TruthFields(const char* op);
  TruthFields& add(const char* key, uint64_t value);
  TruthFields& add(const char* key, int64_t value);
  TruthFields& add(const char* key, int value) { return add(key, static_cast<int64_t>(value)); }
  TruthFields& add(const char* key, unsigned value) { return add(key, static_cast<uint64_t>(value)); }
  TruthFields& add(const char* key, unsigned long long value) { return add(key, static_cast<uint64_t>(value)); }
  TruthFields& add(const char* key, std::string_view text);
  TruthFields& add(const char* key, const char* text) { return add(key, std::string_view(text)); }
  TruthFields& add(const char* key, const void* handle) { return add(key, reinterpret_cast<uint64_t>(handle)); }
  TruthFields& null(const char* key);
  TruthFields& raw(const char* key, std::string_view json);
  const std::string& text() const { return text_; }

 private:
  void key(const char* name);
  std::string text_;
};

// What the lines of one call share. Work that runs after the call returned (queued behind a host function) holds on to
// it; lines added before the call's end are kept until that end is known.
class CallStamp {
 public:
  CallStamp(const char* name, const char* variant, uint64_t seq, Nanos begin);
  void add(const TruthFields& fields);
  ~CallStamp();
  CallStamp(const CallStamp&) = delete;
  CallStamp& operator=(const CallStamp&) = delete;
  // A line may come after the call has returned; if none has come when nobody holds the stamp any more, it is a `call`
  // line.
  void promise();
  // Once, when the call returns: writes what was added, or the `call` line.
  void finish(int result, Nanos end);
  uint64_t seq() const { return seq_; }

 private:
  void write(const std::string& fields);
  const char* name_;
  const char* variant_;
  uint64_t seq_;
  Nanos begin_;
  Nanos end_ = 0;
  int pid_;
  int tid_;
  int result_ = 0;
  std::mutex mutex_;
  bool finished_ = false;
  bool promised_ = false;
  bool written_ = false;
  std::vector<std::string> waiting_;
};

using Stamp = std::shared_ptr<CallStamp>;  // null unless SIMGPU_TRUTH is set

}  // namespace simgpu
