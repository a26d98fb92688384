// XSpace, which XProf (TensorBoard's profiler of TensorFlow, JAX and PyTorch/XLA) reads: a plane a device with a line a stream, one for the
// host with a line a thread. Field numbers are those of its published schema.
//   · A message holds its parts by length: events wait in a spool, each plane is written as a whole at the end. Lengths that are known only
//     then take five bytes, padded, and are put in place.
//   · Times are ps from the first event. Steps are events of the thread that launches most; readers join a launch and its kernel by
//     correlation_id.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <unordered_map>

#include "analysis/export/event_spool.h"
#include "analysis/export/formats.h"
#include "analysis/export/proto.h"
#include "analysis/words/safe_text.h"
#include "base/fd.h"

namespace gputrace {
namespace {

namespace space {
constexpr u32 kPlane = 1, kHost = 4;
}
namespace plane {
constexpr u32 kId = 1, kName = 2, kLine = 3, kEventNames = 4, kStatNames = 5, kStat = 6;
}
namespace line {
constexpr u32 kId = 1, kName = 2, kEvent = 4, kShownName = 11;
}
namespace event {
constexpr u32 kName = 1, kOffset = 2, kLength = 3, kStat = 4;
}
namespace stat {
constexpr u32 kName = 1, kUnsigned = 3, kSigned = 4, kText = 5, kReference = 7;
}
constexpr u64 kLargest = (u64{1} << 31) - 1;  // of a message that readers take
constexpr std::size_t kPadded = 5;

const char* copy_word(TransferKind kind) {
  switch (kind) {
    case TransferKind::HtoD:
      return "MemcpyH2D";
    case TransferKind::DtoH:
      return "MemcpyD2H";
    case TransferKind::DtoD:
      return "MemcpyD2D";
    case TransferKind::PtoP:
      return "MemcpyP2P";
    case TransferKind::HtoH:
      return "MemcpyH2H";
    default:
      return "MemcpyOther";
  }
}

// Numbers for the texts of a plane, from 1.
class Names {
 public:
  u64 operator()(std::string_view text) {
    const auto found = known_.find(std::string(text));
    if (found != known_.end()) return found->second;
    order_.emplace_back(text);
    return known_.emplace(std::string(text), order_.size()).first->second;
  }
  const std::vector<std::string>& in_order() const { return order_; }

 private:
  std::unordered_map<std::string, u64> known_;
  std::vector<std::string> order_;
};

struct Line {
  u32 spool = 0;
  u64 id = 0;
  std::string name;
};
struct Plane {
  std::string name;
  Names events, stats;
  Proto about;  // stats of the plane
  std::vector<Line> lines;
};

void put_stat(Proto& out, u32 field, Plane& plane, const char* name, u64 value) {
  out.message(field, [&] {
    out.number(stat::kName, plane.stats(name));
    out.number(stat::kUnsigned, value);
  });
}
void put_signed(Proto& out, u32 field, Plane& plane, const char* name, i64 value) {
  out.message(field, [&] {
    out.number(stat::kName, plane.stats(name));
    out.number(stat::kSigned, static_cast<u64>(value));
  });
}
void put_text(Proto& out, u32 field, Plane& plane, const char* name, std::string_view text) {
  out.message(field, [&] {
    out.number(stat::kName, plane.stats(name));
    out.text(stat::kText, valid_utf8(text));
  });
}
// Of texts that are said again and again.
void put_reference(Proto& out, u32 field, Plane& plane, const char* name, std::string_view text) {
  out.message(field, [&] {
    out.number(stat::kName, plane.stats(name));
    out.number(stat::kReference, plane.stats(valid_utf8(text)));
  });
}

// A file of messages whose lengths come last.
class MessageFile {
 public:
  explicit MessageFile(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (!file_) wrong_ = std::strerror(errno);
  }

  void write(std::string_view bytes) {
    held_ += bytes;
    at_ += bytes.size();
    if (held_.size() > (1u << 20)) flush();
  }
  // Where the length of a message stands, to be given to end().
  u64 begin(u32 field) {
    Proto key;
    key.varint(u64{field} << 3 | 2);
    write(key.bytes);
    write(std::string(kPadded, '\0'));
    return at_;
  }
  void end(u64 begun) {
    flush();
    u64 length = at_ - begun;
    if (length > kLargest)
      wrong_ = "more than 2 GiB, which no reader takes: a window of it is to be had by --steps, or --from and --to";
    char padded[kPadded];
    for (std::size_t i = 0; i < kPadded; ++i, length >>= 7)
      padded[i] = static_cast<char>((length & 0x7f) | (i + 1 < kPadded ? 0x80 : 0));
    if (pwrite(file_.get(), padded, kPadded, static_cast<off_t>(begun - kPadded)) != static_cast<ssize_t>(kPadded))
      fail();
  }
  void flush() {
    for (std::size_t done = 0; done < held_.size() && wrong_.empty();) {
      const ssize_t size = ::write(file_.get(), held_.data() + done, held_.size() - done);
      if (size <= 0) return fail();
      done += static_cast<std::size_t>(size);
    }
    held_.clear();
  }
  u64 size() const { return at_; }
  const std::string& wrong() const { return wrong_; }  // empty: nothing

 private:
  void fail() {
    if (wrong_.empty()) wrong_ = errno ? std::strerror(errno) : "cannot be written";
    held_.clear();
  }

  Fd file_;
  std::string held_, wrong_;
  u64 at_ = 0;
};

class XplaneSink : public EventSink {
 public:
  explicit XplaneSink(const std::string& path) : file_(path), spool_(path + ".events") { host_.name = "/host:CPU"; }

  void begin(const ExportProcess& process) override {
    process_ = &process;
    devices_.clear(), works_.clear(), streams_.clear(), steps_.clear();
    threads_.assign(process.threads.size(), {});
    salt_ = process.number * 0x9e3779b97f4a7c15ull;
    if (std::find(hosts_.begin(), hosts_.end(), process.who->host) == hosts_.end()) hosts_.push_back(process.who->host);
  }

  void ran(const DeviceSlice& slice) override {
    Plane& plane = plane_of(slice.device);
    const Described& known = description_of(*slice.work, plane);
    bytes_.bytes = known.stats;
    if (slice.flow) put_signed(bytes_, event::kStat, plane, "correlation_id", correlation_of(slice.flow));
    if (slice.work->kind == OperationKind::Copy)
      put_text(bytes_, event::kStat, plane, "memcpy_details",
               fmt::format("kind:{} size:{} dest:{} async:{}", copy_word(slice.work->transfer), slice.bytes,
                           std::max(slice.device, 0), slice.work->asynchronous ? 1 : 0));
    if (slice.work->kind == OperationKind::Memset)
      put_text(bytes_, event::kStat, plane, "memset_details",
               fmt::format("kind:Memset size:{} async:{}", slice.bytes, slice.work->asynchronous ? 1 : 0));
    add(stream_line(slice, plane), slice.begin, slice.end, known.name);
  }

  void facts(const ProcessTrace& facts) override {
    for (const Device& device : facts.devices) {
      const auto found = devices_.find(device.ordinal);
      if (found == devices_.end()) continue;
      Plane& plane = *found->second;
      put_text(plane.about, plane::kStat, plane, "device_vendor", "Nvidia");
      if (!device.name.empty()) put_text(plane.about, plane::kStat, plane, "device_type_string", device.name);
      const std::pair<const char*, u64> numbers[] = {{"compute_cap_major", device.capability_major},
                                                     {"compute_cap_minor", device.capability_minor},
                                                     {"clock_rate", device.clock_khz},
                                                     {"core_count", device.sms},
                                                     {"memory_size", device.memory_bytes}};
      for (const auto& [name, value] : numbers) {
        if (value || device.capability_major) put_stat(plane.about, plane::kStat, plane, name, value);
      }
    }
    u64 number = facts.steps.first_number;
    for (const Step& step : facts.steps.steps)
      steps_.push_back({step.begin + process_->shift, step.end + process_->shift, number++});
  }

  void host(const HostSlice& slice) override {
    Thread& thread = threads_[slice.thread];
    bytes_.bytes.clear();
    if (slice.kind == HostKind::Call && slice.flow) {
      ++thread.launches;
      put_signed(bytes_, event::kStat, host_, "correlation_id", correlation_of(slice.flow));
    }
    if (!slice.site.empty()) put_reference(bytes_, event::kStat, host_, "source", slice.site);
    if (slice.result) put_stat(bytes_, event::kStat, host_, "result", slice.result);
    const std::string name = valid_utf8(slice.name);
    add(thread_line(slice.thread), slice.begin, slice.end, host_.events(name.empty() ? "unnamed" : name));
  }

  void end() override {
    if (steps_.empty() || threads_.empty()) return;
    const auto most = std::max_element(threads_.begin(), threads_.end(), [](const Thread& left, const Thread& right) {
      return left.launches < right.launches;
    });
    if (most->launches == 0) return;
    const u32 line = thread_line(static_cast<u32>(most - threads_.begin()));
    for (const ToldStep& step : steps_) {
      bytes_.bytes.clear();
      put_signed(bytes_, event::kStat, host_, "_r", 1);
      put_signed(bytes_, event::kStat, host_, "step_num", static_cast<i64>(step.number));
      add(line, step.begin, step.end, host_.events("step"));
    }
  }

  bool wants_sums() const override { return true; }  // steps
  bool failed() const override { return spool_.failed() || !file_.wrong().empty(); }

  std::string finish() {
    u64 id = 0;
    for (const auto& plane : planes_) write_plane(*plane, id++);
    if (!host_.lines.empty()) write_plane(host_, id);
    Proto names;
    for (const std::string& host : hosts_) names.text(space::kHost, valid_utf8(host));
    file_.write(names.bytes);
    file_.flush();
    if (file_.size() > kLargest && file_.wrong().empty())
      return "more than 2 GiB, which no reader takes: a window of it is to be had by --steps, or --from and --to";
    if (spool_.failed() && file_.wrong().empty())
      return "its events could not be kept beside it: is there room on the disk?";
    return file_.wrong();
  }

 private:
  struct Described {
    u64 name = 0;
    std::string stats;
  };
  struct Thread {
    u32 line = 0;  // 1 + its line in the spool; 0: none yet
    u64 launches = 0;
  };
  struct ToldStep {
    Nanos begin, end;
    u64 number;
  };

  void add(u32 line, Nanos begin, Nanos end, u64 name) {
    if (first_ == 0 || begin < first_) first_ = begin;
    spool_.add(line, {begin, std::max(begin, end), static_cast<u32>(name), bytes_.bytes});
  }
  // What readers compare as whole numbers: unlike in each process.
  i64 correlation_of(u64 flow) const { return static_cast<i64>((flow ^ salt_) & 0x7fffffffffffffffull); }

  // A process's device is a plane: numbered on, where several processes have a device 0.
  Plane& plane_of(i32 device) {
    Plane*& known = devices_[device];
    if (known) return *known;
    planes_.push_back(std::make_unique<Plane>());
    known = planes_.back().get();
    const auto taken = [&](i32 number) {
      const std::string name = fmt::format("/device:GPU:{}", number);
      return std::any_of(planes_.begin(), planes_.end(), [&](const auto& plane) { return plane->name == name; });
    };
    i32 number = std::max(device, 0);
    while (taken(number)) ++number;
    known->name = fmt::format("/device:GPU:{}", number);
    return *known;
  }

  u32 stream_line(const DeviceSlice& slice, Plane& plane) {
    const auto [found, fresh] = streams_.emplace(std::tuple(slice.device, slice.context, slice.stream), next_line_);
    if (!fresh) return found->second;
    u64 id = slice.stream;
    const auto taken = [&] {
      return std::any_of(plane.lines.begin(), plane.lines.end(), [&](const Line& line) { return line.id == id; });
    };
    while (taken()) id += 100'000;  // of another context
    plane.lines.push_back({next_line_, id, fmt::format("Stream #{}", id)});
    return next_line_++;
  }
  u32 thread_line(u32 number) {
    Thread& thread = threads_[number];
    if (thread.line) return thread.line - 1;
    const ExportThread& own = process_->threads[number];
    host_.lines.push_back({next_line_, host_.lines.size() + 1,
                           own.tid ? fmt::format("{}/{} {}", process_->who->pid, own.tid, own.name)
                                   : fmt::format("{} threads that are not told", process_->who->pid)});
    thread.line = ++next_line_;
    return thread.line - 1;
  }

  const Described& description_of(const DeviceWork& work, Plane& plane) {
    Described& known = works_[{&work, &plane}];
    if (known.name) return known;
    Proto stats;
    if (work.kind == OperationKind::Kernel)
      put_reference(stats, event::kStat, plane, "kernel_details",
                    fmt::format("regs:{} static_shared:{} dynamic_shared:{} grid:{},{},{} block:{},{},{}",
                                work.registers, work.static_shared, work.dynamic_shared, work.grid[0], work.grid[1],
                                work.grid[2], work.block[0], work.block[1], work.block[2]));
    known.stats = stats.bytes;
    known.name =
        plane.events(valid_utf8(work.kind == OperationKind::Copy ? std::string(copy_word(work.transfer)) : work.name));
    return known;
  }

  void write_plane(Plane& plane, u64 id) {
    const u64 begun = file_.begin(space::kPlane);
    Proto out;
    out.number(plane::kId, id);
    out.text(plane::kName, plane.name);
    out.bytes += plane.about.bytes;
    write_names(out, plane::kEventNames, plane.events);
    write_names(out, plane::kStatNames, plane.stats);
    file_.write(out.bytes);
    for (const Line& line : plane.lines) write_line(line);
    file_.end(begun);
  }
  static void write_names(Proto& out, u32 field, const Names& names) {
    u64 id = 0;
    for (const std::string& name : names.in_order()) {
      ++id;
      out.message(field, [&] {
        out.number(1, id);
        out.message(2, [&] {
          out.number(1, id);
          out.text(2, name);
        });
      });
    }
  }
  void write_line(const Line& line) {
    const u64 begun = file_.begin(plane::kLine);
    Proto out;
    out.number(line::kId, line.id);
    out.text(line::kName, valid_utf8(line.name));
    out.text(line::kShownName, valid_utf8(line.name));
    spool_.each(line.spool, [&](const SpooledEvent& one) {
      out.message(line::kEvent, [&] {
        out.number(event::kName, one.kind);
        out.number(event::kOffset, static_cast<u64>(one.begin - first_) * 1000);
        out.number(event::kLength, static_cast<u64>(one.end - one.begin) * 1000);
        out.bytes += one.bytes;
      });
      if (out.bytes.size() < (64u << 10)) return;
      file_.write(out.bytes);
      out.bytes.clear();
    });
    file_.write(out.bytes);
    file_.end(begun);
  }

  MessageFile file_;
  EventSpool spool_;
  Proto bytes_;  // stats of the event in hand
  const ExportProcess* process_ = nullptr;
  u64 salt_ = 0;
  Nanos first_ = 0;
  u32 next_line_ = 0;
  std::vector<std::string> hosts_;
  std::vector<std::unique_ptr<Plane>> planes_;
  Plane host_;
  std::map<i32, Plane*> devices_;                                    // of the process
  std::map<std::tuple<i32, u32, u32>, u32> streams_;                 // of the process: device, context, stream
  std::map<std::pair<const DeviceWork*, Plane*>, Described> works_;  // of the process
  std::vector<Thread> threads_;                                      // of the process
  std::vector<ToldStep> steps_;                                      // of the process
};

}  // namespace

extern constexpr ExportFormat xplane_export = {
    .name = "xplane",
    .kind = ExportFormat::Kind::File,
    .suffix = ".xplane.pb",
    .readers = "XProf, TensorBoard's profiler plugin",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<XplaneSink>(target.path);
    },
    .finish = [](EventSink& sink) { return static_cast<XplaneSink&>(sink).finish(); },
};

}  // namespace gputrace
