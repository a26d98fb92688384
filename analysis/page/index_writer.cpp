#include "analysis/page/index_writer.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <algorithm>

#include "analysis/events/run_events.h"
#include "analysis/page/event_names.h"
#include "analysis/page/index_bytes.h"
#include "analysis/page/packed.h"

namespace gputrace {
namespace {

constexpr std::size_t kFinePieces = 4 * EventStrip::kMostPieces;  // of a strip of what is likely

constexpr Nanos kWidestOfFine = 8;  // times its width: as wide as pieces may become

// Twice as fine as of a run that is as long as is likely, from before that on.
EventStrip fine_strip(TimeSpan likely) {
  if (!is_time(likely.from, likely.to)) likely = {0, 0};  // headers may say anything, runs may be empty
  EventStrip strip;
  strip.width = EventStrip::width_of(likely.to - likely.from) / 2;
  strip.begin = EventStrip::aligned(likely.from, kWidestOfFine * strip.width) - kWidestOfFine * strip.width;
  strip.most = kFinePieces;
  return strip;
}

}  // namespace

// One side's events, packed block by block.
class EventIndexWriter::Side {
 public:
  // `strip`: an empty one, of the clock of the events.
  Side(IndexFile& file, const EventStrip& strip) : file_(file), strip_(strip) {}

  void take(const LoggedEvent& event) {
    if (file_.failed()) return;
    if (!is_time(event.begin, event.end)) return file_.fail();
    if (event.track >= parts_.size()) parts_.resize(event.track + 1u);
    auto& of_track = parts_[event.track];
    const u32 place = length_class(event);
    if (place >= of_track.size()) of_track.resize(place + 1u);
    if (!of_track[place]) of_track[place] = fresh();
    Part& part = *of_track[place];
    part.begins.add_signed(event.begin - part.before);
    part.before = event.begin;
    part.lengths.add(static_cast<u64>(event.end - event.begin));
    part.names.add(event.name);
    part.amounts.add(event.amount);
    part.sites.add(event.site);
    // 0: none; else its step from the flow before, + 1.
    part.flows.add(event.flow ? zigzag(event.flow - part.flow_before) + 1 : 0);
    if (event.flow) part.flow_before = event.flow;
    part.first = part.events ? std::min(part.first, event.begin) : event.begin;
    part.last = part.events ? std::max(part.last, event.begin) : event.begin;
    part.strip.add(event.begin, event.end);
    ++waiting_;
    if (++part.events == kBlockEvents) flush(event.track, place, part);
    // Runs of very many threads and streams: their blocks are smaller.
    if (waiting_ >= kMostWaiting) flush_all();
  }

  void flush_all() {
    for (u32 track = 0; track < parts_.size(); ++track) {
      for (u32 place = 0; place < parts_[track].size(); ++place) {
        if (parts_[track][place]) flush(track, place, *parts_[track][place]);
        parts_[track][place].reset();
      }
    }
  }

  // Blocks with their tracks' numbers on this side, instants as they came and strips of what was likely.
  std::vector<EventDirectory::Block>& blocks() { return blocks_; }

 private:
  struct Part {
    PackedColumn begins, lengths, names, amounts, sites, flows;
    u64 events = 0;
    Nanos before = 0, first = 0, last = 0;
    u64 flow_before = 0;
    EventStrip strip;
  };

  std::unique_ptr<Part> fresh() const {
    auto part = std::make_unique<Part>();
    part->strip = strip_;
    return part;
  }

  void flush(u32 track, u32 place, Part& part) {
    if (part.events == 0 || file_.failed()) return;
    std::string raw;
    for (const PackedColumn* one : {&part.begins, &part.lengths, &part.names, &part.amounts, &part.sites, &part.flows})
      raw += one->bytes();
    const std::string bytes = packed(raw);
    if (bytes.empty()) return file_.fail();
    EventDirectory::Block& block = blocks_.emplace_back();
    block.place = {file_.write(bytes), bytes.size(), raw.size(), checksum_of(bytes)};
    block.track = track, block.length_class = place, block.events = part.events;
    block.first = part.first, block.last = part.last;
    block.strip_first = part.strip.first, block.strip = std::move(part.strip.pieces);
    waiting_ -= part.events;
    part = std::move(*fresh());
  }

  IndexFile& file_;
  const EventStrip strip_;
  std::vector<std::vector<std::unique_ptr<Part>>> parts_;  // by track, by class
  std::size_t waiting_ = 0;                                // events in them
  std::vector<EventDirectory::Block> blocks_;
};

u64 IndexFile::write(const std::string& bytes) {
  const u64 at = next_.fetch_add(bytes.size(), std::memory_order_relaxed);
  if (at + bytes.size() > most_bytes_ || !write_at(file_.get(), bytes, at)) fail();
  return at;
}

// One process: its two sides.
class EventIndexWriter::Process : public EventSink {
 public:
  Process(const ExportProcess& process, IndexFile& file, const EventStrip& strip)
      : host_names_(process), file_(file), device_(file, strip), host_(file, strip) {}

  void begin(const ExportProcess&) override {}
  void ran(const DeviceSlice& slice) override {
    device_.take({slice.begin, slice.end, slice.flow, slice.bytes, device_names_.track_of(slice),
                  device_names_.name_of(slice), 0});
  }
  void host(const HostSlice& slice) override {
    host_.take({slice.begin, slice.end, slice.flow, slice.result, host_names_.track_of(slice),
                host_names_.name_of(slice), host_names_.site_of(slice)});
  }
  void end() override {
    device_.flush_all();
    host_.flush_all();
  }
  bool failed() const override { return file_.failed(); }

  void add_to(EventDirectory& directory, RunNames& names, std::size_t process) {
    SideNumbers devices, threads;
    names.add(process, device_names_, devices);
    names.add(process, host_names_, threads);
    add(directory, device_, std::move(devices));
    add(directory, host_, std::move(threads));
  }

 private:
  static void add(EventDirectory& directory, Side& from, SideNumbers numbers) {
    for (EventDirectory::Block& block : from.blocks()) {
      block.side = static_cast<u32>(directory.sides.size());
      block.track = numbers.tracks[block.track];
      directory.blocks.push_back(std::move(block));
    }
    directory.sides.push_back({std::move(numbers.names), std::move(numbers.sites)});
  }

  DeviceSideNames device_names_;
  HostSideNames host_names_;
  IndexFile& file_;
  Side device_, host_;
};

EventIndexWriter::EventIndexWriter(const RunClock& clock, Fd file, u64 most_bytes)
    : fine_(fine_strip(clock.likely)), file_(std::move(file), most_bytes) {}

EventIndexWriter::~EventIndexWriter() = default;

EventSink* EventIndexWriter::sink(std::size_t file, const ExportProcess& process) {
  const std::lock_guard lock(mutex_);
  if (file >= processes_.size()) processes_.resize(file + 1);
  processes_[file] = std::make_unique<Process>(process, file_, fine_);
  return processes_[file].get();
}

// A block's strip in the run's pieces.
void EventIndexWriter::widen(EventDirectory::Block& block, const EventStrip& wanted, Nanos origin) const {
  EventStrip strip = wanted;
  for (std::size_t i = 0; i < block.strip.size(); ++i) {
    if (block.strip[i].count == 0 && block.strip[i].busy_ns == 0) continue;
    const Nanos at = fine_.begin + static_cast<Nanos>(block.strip_first + i) * fine_.width - origin - wanted.begin;
    strip.add(at < 0 ? 0 : std::min<std::size_t>(static_cast<u64>(at / wanted.width), wanted.most - 1), block.strip[i]);
  }
  block.strip_first = strip.first, block.strip = std::move(strip.pieces);
}

std::optional<EventIndex> EventIndexWriter::finish(const LoadedRun& run, const std::vector<std::string>& files) {
  const Nanos length = run.wall_end - run.wall_begin;
  if (file_.failed() || !is_time(0, length)) return {};
  EventDirectory directory;
  RunNames names(run);
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const auto place = names.place_of(files[i]);
    if (processes_[i] && place) processes_[i]->add_to(directory, names, *place);
  }
  directory.tables = names.tables();
  directory.origin = run.origin.value_or(run.wall_begin);
  const EventStrip wanted = EventStrip::of_run(length, directory.origin);
  bool fine_enough = wanted.width >= fine_.width && wanted.width <= kWidestOfFine * fine_.width &&
                     fine_.begin <= directory.origin + wanted.begin;
  for (EventDirectory::Block& block : directory.blocks) {
    block.first -= directory.origin, block.last -= directory.origin;
    fine_enough = fine_enough && block.strip_first + block.strip.size() < kFinePieces;
    if (fine_enough) widen(block, wanted, directory.origin);
  }
  EventIndex index(file_.take(), std::move(directory));
  if (!fine_enough && !index.make_strips()) return {};
  return index;
}

bool has_space(const std::string& folder, u64 bytes) {
  struct statvfs status {};
  return ::statvfs(folder.c_str(), &status) == 0 && status.f_bavail * status.f_frsize / 2 > bytes;
}

Fd unnamed_file(u64 bytes) {
  if (!has_space("/tmp", bytes)) return Fd();
  return Fd(::open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
}

Result<IndexedRun, InputError> load_with_index(const LoadRequest& request, Fd file, u64 most_bytes) {
  const RunOutline outline = outline_of_run(request);
  EventIndexWriter writer(outline.clock, std::move(file), most_bytes);
  RunEvents events(request, outline, writer);
  auto run = load_run(request, &events);
  if (!run) return Failure{run.error()};
  auto index = writer.finish(run.value(), request.files);
  return IndexedRun{std::move(run.value()), std::move(index)};
}

}  // namespace gputrace
