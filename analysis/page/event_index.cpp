#include "analysis/page/event_index.h"

#include <algorithm>

#include "analysis/page/index_bytes.h"
#include "analysis/page/packed.h"

namespace gputrace {
namespace {

constexpr u64 kMostRaw = u64{1} << 28;  // bytes of one extent: what would be more is not kept
constexpr char kMagic[8] = {'G', 'T', 'V', 'I', 'E', 'W', '0', '4'};

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
  out.add_signed(directory.origin);
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
  out.add(directory.sides.size());
  for (const EventDirectory::Side& one : directory.sides) {
    for (const std::vector<u32>* numbers : {&one.names, &one.sites}) {
      out.add(numbers->size());
      for (const u32 number : *numbers) out.add(number);
    }
  }
  out.add(directory.blocks.size());
  for (const EventDirectory::Block& one : directory.blocks) {
    for (const u64 value : {one.place.offset, one.place.packed, one.place.raw, one.place.checksum, u64{one.side},
                            u64{one.track}, u64{one.length_class}, one.events})
      out.add(value);
    out.add_signed(one.first);
    out.add_signed(one.last);
    out.add(one.strip_first);
    out.add(one.strip.size());
    for (const EventStrip::Piece& piece : one.strip) out.add(piece.busy_ns), out.add(piece.count);
  }
  return std::string(out.bytes());
}

// Numbers below `end`; false: they are not.
bool read_numbers(ColumnReader& in, std::size_t end, std::vector<u32>& numbers) {
  numbers.resize(in.count());
  for (u32& one : numbers) {
    const u64 number = in.number();
    if (number >= end) return false;
    one = static_cast<u32>(number);
  }
  return true;
}

// Nothing: it is not one of this key, or damaged.
std::optional<EventDirectory> read_directory(const std::string& bytes, const std::string& key, u64 file_size) {
  ColumnReader in(bytes);
  if (in.text() != key) return {};
  EventDirectory directory;
  EventTables& tables = directory.tables;
  tables.length = in.number_signed();
  directory.origin = in.number_signed();
  if (!is_time(0, tables.length) || !is_time(directory.origin, directory.origin)) return {};
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
  directory.sides.resize(in.count(2));
  for (EventDirectory::Side& one : directory.sides) {
    if (!read_numbers(in, tables.names.size(), one.names) || !read_numbers(in, tables.sites.size(), one.sites))
      return {};
  }
  directory.blocks.resize(in.count(12));
  for (EventDirectory::Block& one : directory.blocks) {
    one.place = {in.number(), in.number(), in.number(), in.number()};
    one.side = static_cast<u32>(in.number());
    one.track = static_cast<u32>(in.number());
    one.length_class = static_cast<u32>(in.number());
    one.events = in.number();
    one.first = in.number_signed();
    one.last = in.number_signed();
    one.strip_first = in.number();
    one.strip.resize(in.count(2));
    for (EventStrip::Piece& piece : one.strip) piece.busy_ns = in.number(), piece.count = in.number();
    if (one.side >= directory.sides.size() || one.track >= tables.tracks.size() || one.length_class >= kLengthClasses ||
        one.events > kBlockEvents || !is_in(one.place.offset, one.place.packed, file_size) ||
        one.place.raw > kMostRaw || one.strip_first >= EventStrip::kMostPieces ||
        one.strip.size() > EventStrip::kMostPieces - one.strip_first)
      return {};
  }
  if (!in.good() || !in.at_end()) return {};
  return directory;
}

}  // namespace

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
  const EventDirectory::Side& side = directory_.sides[block.side];
  std::vector<LoggedEvent> events(block.events);
  Nanos begin = -directory_.origin;
  u64 flow = 0;
  for (LoggedEvent& one : events) one.track = block.track, one.begin = begin = sum(begin, unzigzag(in.number()));
  for (LoggedEvent& one : events) {
    one.end = sum(one.begin, in.number());
    if (!is_time(one.begin, one.end) || length_class(one) != block.length_class) return false;
  }
  for (LoggedEvent& one : events) {
    const u64 name = in.number();
    if (name >= side.names.size()) return false;
    one.name = side.names[name];
  }
  for (LoggedEvent& one : events) one.amount = in.number();
  for (LoggedEvent& one : events) {
    const u64 site = in.number();
    if (site >= side.sites.size()) return false;
    one.site = side.sites[site];
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
    if (track >= strips.size())
      strips.resize(track + 1u, EventStrip::of_run(directory_.tables.length, directory_.origin));
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

bool EventIndex::make_strips() {
  for (EventDirectory::Block& block : directory_.blocks) {
    EventStrip strip = EventStrip::of_run(directory_.tables.length, directory_.origin);
    if (!each_of(block, [&](const LoggedEvent& one) { strip.add(one.begin, one.end); })) return false;
    block.strip_first = strip.first, block.strip = std::move(strip.pieces);
  }
  return true;
}

bool EventIndex::keep(const std::string& key, const std::string& document) {
  u64 at = bytes();
  const auto write = [&](const std::string& raw, IndexExtent& place) {
    if (raw.size() > kMostRaw) return false;
    const std::string bytes = packed(raw);
    place = {at, bytes.size(), raw.size(), checksum_of(bytes)};
    at += bytes.size();
    return !bytes.empty() && write_at(file_.get(), bytes, place.offset);
  };
  Footer footer{};
  std::memcpy(footer.magic, kMagic, sizeof kMagic);
  if (!write(document, footer.document)) return false;
  if (!write(packed_directory(directory_, key), footer.directory)) return false;
  document_ = footer.document;
  std::string last(reinterpret_cast<const char*>(&footer), sizeof footer);
  footer.checksum = checksum_of(last.substr(0, offsetof(Footer, checksum)));
  last.assign(reinterpret_cast<const char*>(&footer), sizeof footer);
  return write_at(file_.get(), last, at);
}

}  // namespace gputrace
