// The events of a run in one file, ordered so that a window of any size is picked without reading the others (picked_events.h): from those
// parts alone that hold it.
//
//   event ──▶ its track and class of length ──▶ block of at most kBlockEvents, packed ──▶ file      (index_writer.h)
//                                                 └▶ what it covers, and its strip ──▶ directory
//   pick: blocks that touch the window, whole; classes of long events, as many as may be kept; of the others the blocks' strips
//
//   · Classes: below 256 ns, then doubling.
//   · Blocks have the instants and the numbers of the side of a process that they come from: the directory has what to take away and to
//     look up, which is known only when the run is loaded.
//   · What is read is not trusted: bounds and checksums, before anything is taken from it. A file that fails them answers nothing.
//   · Single-threaded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/page/picked_events.h"
#include "base/fd.h"

namespace gputrace {

inline constexpr std::size_t kBlockEvents = 4096;

// Where packed bytes lie in the file.
struct IndexExtent {
  u64 offset = 0, packed = 0, raw = 0;  // bytes
  u64 checksum = 0;                     // XXH3-64 of the packed bytes
};

struct EventDirectory {
  // The devices or the threads of a process: what its blocks' numbers are in the tables.
  struct Side {
    std::vector<u32> names, sites;
  };
  struct Block {
    IndexExtent place;
    u32 side = 0, track = 0, length_class = 0;
    u64 events = 0;
    Nanos first = 0, last = 0;  // begins, from the run's origin
    std::size_t strip_first = 0;
    std::vector<EventStrip::Piece> strip;
  };
  EventTables tables;
  Nanos origin = 0;  // of the run, on the clock of the blocks' instants
  std::vector<Side> sides;
  std::vector<Block> blocks;
};

class EventIndex {
 public:
  // The open index in `file`, made of what `key` names; nothing: it is damaged, of another version, or of something else.
  static std::optional<EventIndex> open(Fd file, const std::string& key);

  // At most `most` events. Nothing: it cannot be read any more.
  std::optional<PickedEvents> pick(std::size_t most, std::optional<std::pair<Nanos, Nanos>> window = {}) const;
  const EventTables& tables() const { return directory_.tables; }
  // A text that was kept with it; nothing: it cannot be read.
  std::optional<std::string> document() const { return read(document_); }
  u64 bytes() const;  // of the file

  // Of one that was written just now: writes the rest, so that open() with this key reads it. False: it could not be written.
  bool keep(const std::string& key, const std::string& document);

 private:
  friend class EventIndexWriter;
  EventIndex(Fd file, EventDirectory directory) : file_(std::move(file)), directory_(std::move(directory)) {}

  std::optional<std::string> read(const IndexExtent& place) const;
  // Calls take(event) for each of the block; false: it is damaged.
  template <typename Take>
  bool each_of(const EventDirectory::Block& block, Take&& take) const;
  bool pick_side(bool device, EventSide& side, Nanos middle, std::vector<EventStrip>& strips) const;
  u64 surely_inside(bool device, const EventSide& side) const;
  bool make_strips();  // from the events; false: they cannot be read

  Fd file_;
  EventDirectory directory_;
  IndexExtent document_;
};

}  // namespace gputrace
