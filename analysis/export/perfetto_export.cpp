// Perfetto: a protobuf trace of track events (https://perfetto.dev/docs/reference/trace-packet-proto). Field numbers are those
// of its published schema.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <unordered_map>

#include "analysis/export/formats.h"
#include "analysis/export/lanes.h"
#include "analysis/export/proto.h"
#include "analysis/facts/kind_names.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

namespace packet {
constexpr u32 kPacket = 1, kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12, kSequenceFlags = 13,
              kTrackDescriptor = 60;
constexpr u64 kCleared = 1, kNeeds = 2;
}  // namespace packet
namespace track {
constexpr u32 kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
}
namespace event {
constexpr u32 kAnnotation = 4, kType = 9, kNameId = 10, kTrack = 11, kCategory = 3, kCounterValue = 30, kFlow = 47;
constexpr u64 kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace interned {
constexpr u32 kCategories = 1, kNames = 2, kAnnotationNames = 3, kStrings = 29;
}
namespace annotation {
constexpr u32 kNameId = 1, kNumber = 3, kStringId = 17;
}

constexpr std::size_t kFlushAt = 1u << 20;

// A text that is interned where it is first used.
struct Key {
  const char* text;
  u64 id = 0;
};

class PerfettoSink : public EventSink {
 public:
  explicit PerfettoSink(const WriteBytes& write) : write_(write) {
    in_packet([&] { out_.number(packet::kSequenceFlags, packet::kCleared); });
  }

  void begin(const ExportProcess& process) override {
    threads_.assign(process.threads.size(), {});
    streams_.clear(), idle_.clear(), works_.clear(), calls_.clear(), ranges_ = {};
    names_of_threads_ = &process.threads;
    shift_ = process.shift;
    flow_salt_ = process.number * 0x9e3779b97f4a7c15ull;
    pid_ = process.who->pid;
    std::string name = process.who->executable.substr(process.who->executable.find_last_of('/') + 1);
    if (!process.who->rank.empty()) name = "rank " + process.who->rank + " " + name;
    if (!pids_.emplace(pid_, process.number).second) {  // of another host: a number of its own
      name += fmt::format(" (pid {} on {})", pid_, process.who->host);
      pid_ = 1'000'000'000 + static_cast<i32>(process.number);
    }
    process_ = next_track_++;
    describe(process_, 0, "", [&] {
      out_.message(track::kProcess, [&] {
        out_.number(1, static_cast<u64>(pid_));
        out_.text(2, valid_utf8(process.who->command));
        out_.text(6, valid_utf8(name));
      });
    });
  }

  void ran(const DeviceSlice& slice) override {
    Stream& stream = streams_[stream_key(slice)];
    const std::size_t lane = stream.lanes.place(slice.begin, slice.end);
    if (lane >= stream.tracks.size()) {
      const std::string number = lane == 0 ? "" : fmt::format(" ({})", lane + 1);
      stream.tracks.push_back(
          new_track(process_, fmt::format("GPU {} stream {}{}", slice.device, slice.stream, number)));
    }
    const std::string& known = description_of(*slice.work);
    write_slice(stream.tracks[lane], slice.begin, slice.end, [&](ProtoFields& out) {
      out.raw(known);
      if (slice.flow) out.fixed(event::kFlow, slice.flow ^ flow_salt_);
      if (slice.bytes) note(out, key_bytes_, slice.bytes);
      if (slice.correlation) note(out, key_correlation_, slice.correlation);
      if (slice.graph_node) note(out, key_node_, slice.graph_node);
    });
  }

  void idled(const IdleGap& gap) override {
    Stream& track = idle_[gap.device];
    const std::size_t lane = track.lanes.place(gap.begin, gap.end);
    if (lane >= track.tracks.size())
      track.tracks.push_back(new_track(process_, fmt::format("GPU {} idle", gap.device)));
    write_slice(track.tracks[lane], gap.begin, gap.end, [&](ProtoFields& out) {
      out.number(event::kNameId, name_id(idle_cause_name(gap.largest())));
      out.number(event::kCategory, category_id("idle"));
      for (unsigned i = 0; i < kIdleCauses; ++i) {
        if (gap.parts[i] == 0) continue;
        const u64 cause = id_of(keys_, interned::kAnnotationNames, idle_cause_name(static_cast<IdleCause>(i)));
        note(out, cause, annotation::kNumber, static_cast<u64>(gap.parts[i]));
      }
    });
  }

  void facts(const ProcessTrace& facts) override {
    for (const DeviceMemory& memory : facts.device_memory) {
      if (memory.samples.empty()) continue;
      const u64 id = next_track_++;
      describe(id, process_, fmt::format("GPU {} memory", memory.device), [&] {
        out_.message(track::kCounter, [&] { out_.number(3, 3); });  // bytes
      });
      for (const MemorySample& sample : memory.samples) {
        in_packet([&] {
          out_.number(packet::kTimestamp, static_cast<u64>(sample.at + shift_));
          out_.message(packet::kTrackEvent, [&] {
            out_.number(event::kType, event::kCounter);
            out_.number(event::kTrack, id);
            out_.number(event::kCounterValue, sample.bytes);
          });
        });
      }
    }
  }

  void host(const HostSlice& slice) override {
    const u64 id = slice.across_threads ? range_track(slice) : thread_track(slice);
    const Said said = said_of(slice);
    if (slice.kind == HostKind::Mark) {
      write_event<2>(id, slice.begin, event::kInstant, [&](ProtoFields& out) {
        out.number(event::kNameId, said.name);
        out.number(event::kCategory, said.category);
      });
      return;
    }
    write_slice(id, slice.begin, slice.end, [&](ProtoFields& out) {
      out.number(event::kNameId, said.name);
      out.number(event::kCategory, said.category);
      if (slice.flow) out.fixed(event::kFlow, slice.flow ^ flow_salt_);
      if (slice.result) note(out, key_result_, slice.result);
      if (!slice.site.empty()) note(out, key_line_, slice.site);
      if (slice.open) note(out, key_open_, u64{1});
      if (slice.kind == HostKind::Range && !slice.level.empty()) note(out, key_domain_, slice.level);
    });
  }

  bool failed() const override { return failed_; }

  void flush() {
    if (!failed_ && used_ > 0) failed_ = !write_({room_.data(), used_});
    used_ = 0;
  }

 private:
  // Of texts; looked up without making a string.
  struct HashOfText {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Numbers = std::unordered_map<std::string, u64, HashOfText, std::equal_to<>>;

  struct Stream {
    StartLanes lanes;
    std::vector<u64> tracks;  // by lane
  };
  struct Thread {
    EndLanes lanes;
    std::vector<u64> tracks;
  };

  static u64 stream_key(const DeviceSlice& slice) {
    return static_cast<u64>(static_cast<u32>(slice.device)) << 48 ^ static_cast<u64>(slice.context) << 32 ^
           slice.stream;
  }
  static std::string_view category_of(const HostSlice& slice) {
    if (slice.kind == HostKind::Operation) return "operation";
    if (slice.kind == HostKind::Call) return slice.level;
    return "nvtx";
  }

  // A packet of the texts that the next one needs, where it needs some.
  std::string texts_before() {
    Proto before;
    if (pending_.bytes.empty()) return {};
    before.message(packet::kPacket, [&] {
      before.number(packet::kSequence, 1);
      before.text(packet::kInterned, pending_.bytes);
    });
    pending_.bytes.clear();
    return std::move(before.bytes);
  }

  // Packets stand one behind the other; `fill` writes one's fields.
  template <typename Fill>
  void in_packet(Fill&& fill) {
    out_.bytes.clear();
    out_.message(packet::kPacket, [&] {
      out_.number(packet::kSequence, 1);
      fill();
    });
    put_at(used_, texts_before());
    put_at(used_, out_.bytes);
    if (used_ >= kFlushAt) flush();
  }
  // The same for what is written a million times, in the room where it stays. What `fill` writes is at most kMostFields bytes: a description of
  // some work, or name and category; a flow; a few notes, of an idle gap one for each cause.
  static constexpr std::size_t kMostFields = 512, kMostOfEvent = kMostFields + 64;
  template <unsigned LengthBytes, typename Fill>
  void write_event(u64 id, Nanos at, u64 type, Fill&& fill) {
    const std::size_t place = used_;
    ProtoFields out{room_.data() + place};
    out.message_of<LengthBytes>(packet::kPacket, [&] {
      out.number(packet::kSequence, 1);
      out.number(packet::kSequenceFlags, packet::kNeeds);
      out.number(packet::kTimestamp, static_cast<u64>(at));
      out.message_of<LengthBytes>(packet::kTrackEvent, [&] {
        out.number(event::kType, type);
        out.number(event::kTrack, id);
        fill(out);
      });
    });
    used_ = static_cast<std::size_t>(out.at - room_.data());
    if (!pending_.bytes.empty()) put_at(place, texts_before());
    if (used_ >= kFlushAt) flush();
  }
  template <typename Fill>
  void write_slice(u64 id, Nanos begin, Nanos end, Fill&& fill) {
    write_event<2>(id, begin, event::kBegin, fill);
    write_event<1>(id, end, event::kEnd, [](ProtoFields&) {});
  }

  // In front of what was written from there on. Leaves room for an event.
  void put_at(std::size_t at, std::string_view bytes) {
    const std::size_t needed = used_ + bytes.size() + kMostOfEvent;
    if (room_.size() < needed) room_.resize(needed);
    std::memmove(room_.data() + at + bytes.size(), room_.data() + at, used_ - at);
    std::memcpy(room_.data() + at, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

  template <typename Fill>
  void describe(u64 id, u64 parent, const std::string& name, Fill&& fill) {
    in_packet([&] {
      out_.message(packet::kTrackDescriptor, [&] {
        out_.number(track::kUuid, id);
        if (!name.empty()) out_.text(track::kName, name);
        if (parent) out_.number(track::kParent, parent);
        fill();
      });
    });
  }
  u64 new_track(u64 parent, const std::string& name) {
    const u64 id = next_track_++;
    describe(id, parent, name, [] {});
    return id;
  }

  u64 thread_track(const HostSlice& slice) {
    Thread& thread = threads_[slice.thread];
    const std::size_t lane = thread.lanes.place(slice.begin, slice.end);
    while (lane >= thread.tracks.size()) {
      if (!thread.tracks.empty()) {
        thread.tracks.push_back(new_track(thread.tracks[0], fmt::format("crossing ({})", thread.tracks.size() + 1)));
        continue;
      }
      const ExportThread& own = (*names_of_threads_)[slice.thread];
      const u64 id = next_track_++;
      const std::string name = own.tid ? std::string(own.name) : "threads that are not told";
      // What belongs to no thread has no number of its own: that of a thread that cannot be.
      const i32 tid = own.tid ? own.tid : 2'000'000'000 + static_cast<i32>(slice.thread);
      describe(id, process_, "", [&] {
        out_.message(track::kThread, [&] {
          out_.number(1, static_cast<u64>(pid_));
          out_.number(2, static_cast<u64>(tid));
          if (!name.empty()) out_.text(5, valid_utf8(name));
        });
      });
      thread.tracks.push_back(id);
    }
    return thread.tracks[lane];
  }

  u64 range_track(const HostSlice& slice) {
    const std::size_t lane = ranges_.lanes.place(slice.begin, slice.end);
    while (lane >= ranges_.tracks.size())
      ranges_.tracks.push_back(
          new_track(process_, fmt::format("ranges by start and end ({})", ranges_.tracks.size() + 1)));
    return ranges_.tracks[lane];
  }

  // Texts once, by number; `field`: the table of InternedData.
  u64 id_of(Numbers& known, u32 field, std::string_view text) {
    const auto found = known.find(text);
    if (found != known.end()) return found->second;
    const u64 id = known.size() + 1;
    known.emplace(std::string(text), id);
    pending_.message(field, [&] {
      pending_.number(1, id);
      pending_.text(2, valid_utf8(text));
    });
    return id;
  }
  u64 name_id(std::string_view text) { return id_of(names_, interned::kNames, text); }
  u64 category_id(std::string_view text) { return id_of(categories_, interned::kCategories, text); }
  u64 string_id(std::string_view text) { return id_of(strings_, interned::kStrings, text); }

  void note(const char* name, u64 value) {
    const u64 key = id_of(keys_, interned::kAnnotationNames, name);
    out_.message(event::kAnnotation, [&] {
      out_.number(annotation::kNameId, key);
      out_.number(annotation::kNumber, value);
    });
  }
  void note(const char* name, std::string_view value) {
    const u64 key = id_of(keys_, interned::kAnnotationNames, name), text = string_id(value);
    out_.message(event::kAnnotation, [&] {
      out_.number(annotation::kNameId, key);
      out_.number(annotation::kStringId, text);
    });
  }
  void note(ProtoFields& out, Key& key, u64 value) { note(out, id_of(key), annotation::kNumber, value); }
  void note(ProtoFields& out, Key& key, std::string_view value) {
    const u64 name = id_of(key);  // before the value's: numbers are given in this order
    note(out, name, annotation::kStringId, string_id(value));
  }
  static void note(ProtoFields& out, u64 name, u32 field, u64 value) {
    const std::size_t tag = field < 16 ? 1 : 2;
    out.message(event::kAnnotation, 1 + Proto::size_of(name) + tag + Proto::size_of(value));
    out.number(annotation::kNameId, name);
    out.number(field, value);
  }
  u64 id_of(Key& key) { return key.id ? key.id : key.id = id_of(keys_, interned::kAnnotationNames, key.text); }

  // Name and category of a slice, by number.
  struct Said {
    u64 name = 0, category = 0;
  };
  Said said_of(const HostSlice& slice) {
    const bool call = slice.kind == HostKind::Call;  // those of one number say the same
    if (call && slice.call < calls_.size() && calls_[slice.call].name) return calls_[slice.call];
    Said said;
    said.name = name_id(slice.name.empty() ? std::string_view("unnamed") : slice.name);
    said.category = category_id(category_of(slice));
    if (!call) return said;
    if (slice.call >= calls_.size()) calls_.resize(slice.call + 1u);
    return calls_[slice.call] = said;
  }

  // What all slices of that work say alike, encoded once.
  const std::string& description_of(const DeviceWork& work) {
    if (work.number >= works_.size()) works_.resize(work.number + 1u);
    std::string& known = works_[work.number];
    if (!known.empty()) return known;
    out_.bytes.clear();
    out_.number(event::kNameId, name_id(work.name));
    out_.number(event::kCategory, category_id(work.kind == OperationKind::Kernel   ? "kernel"
                                              : work.kind == OperationKind::Graph  ? "graph"
                                              : work.kind == OperationKind::Memset ? "memset"
                                                                                   : "copy"));
    if (work.kind == OperationKind::Kernel) {
      note("grid", triple(work.grid));
      note("block", triple(work.block));
      note("registers", work.registers);
      note("static shared bytes", work.static_shared);
      note("dynamic shared bytes", work.dynamic_shared);
    }
    known.swap(out_.bytes);
    return known;
  }

  const WriteBytes write_;
  std::vector<char> room_ =
      std::vector<char>(kFlushAt + kMostOfEvent);  // what is to be written, of which there is so much
  std::size_t used_ = 0;
  Proto out_, pending_;  // a packet; texts that one needs
  bool failed_ = false;
  u64 next_track_ = 1, process_ = 0, flow_salt_ = 0;
  i32 pid_ = 0;
  Nanos shift_ = 0;
  const std::vector<ExportThread>* names_of_threads_ = nullptr;
  std::map<i32, u32> pids_;
  std::unordered_map<u64, Stream> streams_;
  std::map<i32, Stream> idle_;
  std::vector<Thread> threads_;
  Thread ranges_;
  std::vector<std::string> works_;  // by number
  std::vector<Said> calls_;         // by number in the trace
  Key key_bytes_{"bytes"}, key_correlation_{"correlation"}, key_node_{"graph node"}, key_result_{"result"},
      key_line_{"line"}, key_open_{"open"}, key_domain_{"domain"};
  Numbers names_, categories_, keys_, strings_;
};

}  // namespace

extern constexpr ExportFormat perfetto_export = {
    .name = "perfetto",
    .suffix = ".pftrace",
    .readers = "ui.perfetto.dev, trace_processor",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<PerfettoSink>(target.write);
    },
    .finish = [](EventSink& sink) { return static_cast<PerfettoSink&>(sink).flush(), std::string(); },
};

}  // namespace gputrace
