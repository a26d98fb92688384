#include "analysis/page/event_index.h"

#include <algorithm>

#include "analysis/page/index_bytes.h"

namespace gputrace {
namespace {

constexpr u64 kMostRaw = u64{1} << 28;  // bytes of one extent: what would be more is not kept
constexpr char kMagic[8] = {'G', 'T', 'V', 'I', 'E', 'W', '0', '1'};

// The last bytes of the file.
struct Footer {
  char magic[8];
  IndexExtent directory, document;
  u64 checksum;  // of the bytes before it
};

// Wraps: what stands in a file may be anything.
Nanos sum(Nanos to, u64 by) { return static_cast<Nanos>(static_cast<u64>(to) + by); }

bool is_in(u64 offset, u64 bytes, u64 size) { return offset <= size && bytes <= size - offset; }

std::string packed_directory(const EventDirectory& directory, const std::string& key) {
  PackedColumn out;
  const EventTables& tables = directory.tables;
  out.add_text(key);
  out.add_signed(tables.length);
  out.add(tables.processes.size());
  for (const EventTables::Process& one : tables.processes) {
    out.add_signed(one.pid);
    for (const std::string* text : {&one.rank, &one.host, &one.executable}) out.add_text(*text);
  }
  out.add(tables.tracks.size());
  for (const EventTables::Track& one : tables.tracks) {
    out.add(one.process);
    out.add_text(one.kind);
    out.add_text(one.label);
    out.add_signed(one.id);
    out.add(one.device.has_value());
    out.add_signed(one.device.value_or(0));
  }
  out.add(tables.names.size());
  for (const EventTables::Name& one : tables.names) {
    for (const std::string* text : {&one.text, &one.kind, &one.whole, &one.detail}) out.add_text(*text);
  }
  out.add(tables.sites.size());
  for (const std::string& one : tables.sites) out.add_text(one);
  out.add(directory.blocks.size());
  for (const EventDirectory::Block& one : directory.blocks) {
    for (const u64 value : {one.place.offset, one.place.packed, one.place.raw, one.place.checksum, u64{one.track},
                            u64{one.length_class}, one.events})
      out.add(value);
    out.add_signed(one.first);
    out.add_signed(one.last);
    out.add(one.strip_first);
    out.add(one.strip.size());
    for (const EventStrip::Piece& piece : one.strip) out.add(piece.busy_ns), out.add(piece.count);
  }
  return out.bytes();
}

// Nothing: it is not one of this key, or damaged.
std::optional<EventDirectory> read_directory(const std::string& bytes, const std::string& key, u64 file_size) {
  ColumnReader in(bytes);
  if (in.text() != key) return {};
  EventDirectory directory;
  EventTables& tables = directory.tables;
  tables.length = in.number_signed();
  if (!is_time(0, tables.length)) return {};
  tables.processes.resize(in.count(4));
  for (EventTables::Process& one : tables.processes) {
    one.pid = in.number_signed();
    for (std::string* text : {&one.rank, &one.host, &one.executable}) *text = in.text();
  }
  tables.tracks.resize(in.count(6));
  for (EventTables::Track& one : tables.tracks) {
    one.process = in.number();
    one.kind = in.text();
    one.label = in.text();
    one.id = in.number_signed();
    const bool has_device = in.number() != 0;
    const i64 device = in.number_signed();
    if (has_device) one.device = device;
    if (one.process >= tables.processes.size()) return {};
  }
  tables.names.resize(in.count(4));
  for (EventTables::Name& one : tables.names) {
    for (std::string* text : {&one.text, &one.kind, &one.whole, &one.detail}) *text = in.text();
  }
  tables.sites.resize(in.count());
  for (std::string& one : tables.sites) one = in.text();
  directory.blocks.resize(in.count(11));
  for (EventDirectory::Block& one : directory.blocks) {
    one.place = {in.number(), in.number(), in.number(), in.number()};
    one.track = static_cast<u32>(in.number());
    one.length_class = static_cast<u32>(in.number());
    one.events = in.number();
    one.first = in.number_signed();
    one.last = in.number_signed();
    one.strip_first = in.number();
    one.strip.resize(in.count(2));
    for (EventStrip::Piece& piece : one.strip) piece.busy_ns = in.number(), piece.count = in.number();
    if (one.track >= tables.tracks.size() || one.length_class >= kLengthClasses ||
        one.events > EventIndexWriter::kBlockEvents || !is_in(one.place.offset, one.place.packed, file_size) ||
        one.place.raw > kMostRaw || one.strip_first >= EventStrip::kMostPieces ||
        one.strip.size() > EventStrip::kMostPieces - one.strip_first)
      return {};
  }
  if (!in.good() || !in.at_end()) return {};
  return directory;
}

}  // namespace

// ------------------------------------------------------------ reading

std::optional<std::string> EventIndex::read(const IndexExtent& place) const {
  if (place.raw > kMostRaw || place.packed > kMostRaw) return {};
  std::string packed(place.packed, '\0');
  if (!read_at(file_.get(), packed, place.offset) || checksum_of(packed) != place.checksum) return {};
  return unpacked(packed, place.raw);
}

std::optional<EventIndex> EventIndex::open(Fd file, const std::string& key) {
  const auto size = size_of(file.get());
  Footer footer{};
  std::string bytes(sizeof footer, '\0');
  if (!size || *size < sizeof footer || !read_at(file.get(), bytes, *size - sizeof footer)) return {};
  std::memcpy(&footer, bytes.data(), sizeof footer);
  bytes.resize(offsetof(Footer, checksum));
  if (std::memcmp(footer.magic, kMagic, sizeof kMagic) != 0 || checksum_of(bytes) != footer.checksum) return {};
  for (const IndexExtent* one : {&footer.directory, &footer.document}) {
    if (!is_in(one->offset, one->packed, *size)) return {};
  }
  EventIndex index(std::move(file), {});
  index.document_ = footer.document;
  const auto raw = index.read(footer.directory);
  if (!raw) return {};
  auto directory = read_directory(*raw, key, *size);
  if (!directory) return {};
  index.directory_ = std::move(*directory);
  return index;
}

u64 EventIndex::bytes() const { return size_of(file_.get()).value_or(0); }

template <typename Take>
bool EventIndex::each_of(const EventDirectory::Block& block, Take&& take) const {
  const auto raw = read(block.place);
  if (!raw) return false;
  ColumnReader in(*raw);
  std::vector<LoggedEvent> events(block.events);
  Nanos begin = 0;
  u64 flow = 0;
  for (LoggedEvent& one : events) one.track = block.track, one.begin = begin = sum(begin, unzigzag(in.number()));
  for (LoggedEvent& one : events) {
    one.end = sum(one.begin, in.number());
    if (!is_time(one.begin, one.end) || length_class(one) != block.length_class) return false;
  }
  for (LoggedEvent& one : events) {
    const u64 name = in.number();
    if (name >= directory_.tables.names.size()) return false;
    one.name = static_cast<u32>(name);
  }
  for (LoggedEvent& one : events) one.amount = in.number();
  for (LoggedEvent& one : events) {
    const u64 site = in.number();
    if (site >= directory_.tables.sites.size()) return false;
    one.site = static_cast<u32>(site);
  }
  for (LoggedEvent& one : events) {
    if (const u64 step = in.number()) one.flow = flow += unzigzag(step - 1);
  }
  if (!in.good() || !in.at_end()) return false;
  for (const LoggedEvent& one : events) take(one);
  return true;
}

u64 EventIndex::surely_inside(bool device, const EventSide& side) const {
  u64 events = 0;
  for (const EventDirectory::Block& block : directory_.blocks) {
    const bool ours = directory_.tables.tracks[block.track].is_device() == device;
    if (ours && block.first >= side.begin && block.last < side.end) events += block.events;
  }
  return events;
}

bool EventIndex::pick_side(bool device, EventSide& side, Nanos middle, std::vector<EventStrip>& strips) const {
  const auto is_inside = [&](const LoggedEvent& one) { return one.begin >= side.begin && one.begin < side.end; };
  const auto is_ours = [&](const EventDirectory::Block& one) {
    return directory_.tables.tracks[one.track].is_device() == device;
  };
  // The window, narrowed as EventLog does: until half of what may be kept lies in it, if it is not the whole run and all of it.
  for (;;) {
    const u64 limit = side.whole() ? side.most : side.most / 2;
    side.inside.clear();
    bool fits = surely_inside(device, side) <= limit;
    for (const EventDirectory::Block& block : directory_.blocks) {
      if (!fits) break;
      if (!is_ours(block) || block.last < side.begin || block.first >= side.end) continue;
      if (!each_of(block, [&](const LoggedEvent& one) {
            if (is_inside(one)) side.inside.push_back(one);
          }))
        return false;
      fits = side.inside.size() <= limit;
    }
    if (fits) break;
    narrow_window(side, middle, directory_.tables.length);
  }
  std::vector<u64> outside(kLengthClasses);
  for (const EventDirectory::Block& block : directory_.blocks) {
    if (is_ours(block)) outside[block.length_class] += block.events;
  }
  for (const LoggedEvent& one : side.inside) --outside[length_class(one)];
  // Classes from the longest down, as many as fit.
  u32 kept = kLengthClasses;
  for (u64 events = 0; kept > 0 && events + outside[kept - 1] <= side.most / 2; --kept) events += outside[kept - 1];
  side.shortest = shortest_of_class(kept);
  const auto strip_of = [&](u32 track) -> EventStrip& {
    if (track >= strips.size()) strips.resize(track + 1u, {EventStrip::width_of(directory_.tables.length), 0, {}});
    return strips[track];
  };
  for (const EventDirectory::Block& block : directory_.blocks) {
    if (!is_ours(block)) continue;
    if (block.length_class >= kept) {
      if (block.first >= side.begin && block.last < side.end) continue;
      if (!each_of(block, [&](const LoggedEvent& one) {
            if (!is_inside(one)) side.longest.push_back(one);
          }))
        return false;
    } else {
      side.left_out += block.events;
      for (std::size_t i = 0; i < block.strip.size(); ++i) {
        if (block.strip[i].count || block.strip[i].busy_ns)
          strip_of(block.track).add(block.strip_first + i, block.strip[i]);
      }
    }
  }
  for (const LoggedEvent& one : side.inside) {
    if (length_class(one) >= kept) continue;
    strip_of(one.track).take_away(one.begin, one.end);
    --side.left_out;
  }
  return true;
}

std::optional<PickedEvents> EventIndex::pick(std::size_t most, std::optional<std::pair<Nanos, Nanos>> window) const {
  PickedEvents picked(most, window);
  const Nanos middle = window ? window->first + (window->second - window->first) / 2 : directory_.tables.length / 2;
  if (!pick_side(false, picked.host, middle, picked.strips)) return {};
  if (!pick_side(true, picked.device, middle, picked.strips)) return {};
  return picked;
}

// ------------------------------------------------------------ writing

struct EventIndexWriter::Part {
  PackedColumn begins, lengths, names, amounts, sites, flows;
  u64 events = 0;
  Nanos before = 0, first = 0, last = 0;
  u64 flow_before = 0;
  EventStrip strip;
};

EventIndexWriter::EventIndexWriter(const LoadedRun& run, Fd file, u64 most_bytes)
    : EventNamer(run),
      file_(std::move(file)),
      most_bytes_(most_bytes),
      width_(EventStrip::width_of(run.wall_end - run.wall_begin)),
      failed_(!is_time(0, run.wall_end - run.wall_begin)) {}

EventIndexWriter::~EventIndexWriter() = default;

void EventIndexWriter::take(bool, const LoggedEvent& event) {
  failed_ = failed_ || !is_time(event.begin, event.end);
  if (failed_) return;
  if (event.track >= parts_.size()) parts_.resize(event.track + 1u);
  auto& of_track = parts_[event.track];
  const u32 place = length_class(event);
  if (place >= of_track.size()) of_track.resize(place + 1u);
  if (!of_track[place]) {
    of_track[place] = std::make_unique<Part>();
    of_track[place]->strip.width = width_;
  }
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

void EventIndexWriter::flush(u32 track, u32 place, Part& part) {
  if (part.events == 0 || failed_) return;
  std::string raw;
  for (const PackedColumn* one : {&part.begins, &part.lengths, &part.names, &part.amounts, &part.sites, &part.flows})
    raw += one->bytes();
  const std::string bytes = packed(raw);
  EventDirectory::Block block;
  block.place = {written_, bytes.size(), raw.size(), checksum_of(bytes)};
  block.track = track, block.length_class = place, block.events = part.events;
  block.first = part.first, block.last = part.last;
  block.strip_first = part.strip.first, block.strip = std::move(part.strip.pieces);
  failed_ = bytes.empty() || written_ + bytes.size() > most_bytes_ || !write_at(file_.get(), bytes, written_);
  written_ += bytes.size();
  waiting_ -= part.events;
  blocks_.push_back(std::move(block));
  part = Part();
  part.strip.width = width_;
}

void EventIndexWriter::flush_all() {
  for (u32 track = 0; track < parts_.size(); ++track) {
    for (u32 place = 0; place < parts_[track].size(); ++place) {
      if (parts_[track][place]) flush(track, place, *parts_[track][place]);
      parts_[track][place].reset();
    }
  }
}

std::optional<EventIndex> EventIndexWriter::finish() {
  flush_all();
  if (failed_) return {};
  return EventIndex(std::move(file_), {std::move(tables_), std::move(blocks_)});
}

bool EventIndexWriter::keep(EventIndex& index, const std::string& key, const std::string& document) {
  u64 at = index.bytes();
  const auto write = [&](const std::string& raw, IndexExtent& place) {
    if (raw.size() > kMostRaw) return false;
    const std::string bytes = packed(raw);
    place = {at, bytes.size(), raw.size(), checksum_of(bytes)};
    at += bytes.size();
    return !bytes.empty() && write_at(index.file_.get(), bytes, place.offset);
  };
  Footer footer{};
  std::memcpy(footer.magic, kMagic, sizeof kMagic);
  if (!write(document, footer.document)) return false;
  if (!write(packed_directory(index.directory_, key), footer.directory)) return false;
  index.document_ = footer.document;
  std::string bytes(reinterpret_cast<const char*>(&footer), sizeof footer);
  footer.checksum = checksum_of(bytes.substr(0, offsetof(Footer, checksum)));
  bytes.assign(reinterpret_cast<const char*>(&footer), sizeof footer);
  return write_at(index.file_.get(), bytes, at);
}

}  // namespace gputrace
