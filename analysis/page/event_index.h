// The events of a run in one file, ordered so that a window of any size is picked without reading the others: what EventLog would keep of
// the whole run, from those parts alone that hold it.
//
//   event ──▶ its track and class of length ──▶ block of at most kBlockEvents, packed ──▶ file
//                                                 └▶ what it covers, and its strip ──▶ directory
//   pick: blocks that touch the window, whole; classes of long events, as many as may be kept; of the others the blocks' strips
//
//   · Classes are those at which EventLog divides long from short: below 256 ns, then doubling.
//   · What is read is not trusted: bounds and checksums, before anything is taken from it. A file that fails them answers nothing.
//   · Single-threaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/page/event_log.h"
#include "analysis/page/packed.h"
#include "base/fd.h"

namespace gputrace {

// Where packed bytes lie in the file.
struct IndexExtent {
  u64 offset = 0, packed = 0, raw = 0;  // bytes
  u64 checksum = 0;                     // XXH3-64 of the packed bytes
};

struct EventDirectory {
  struct Block {
    IndexExtent place;
    u32 track = 0, length_class = 0;
    u64 events = 0;
    Nanos first = 0, last = 0;  // begins
    std::size_t strip_first = 0;
    std::vector<EventStrip::Piece> strip;
  };
  EventTables tables;
  std::vector<Block> blocks;
};

class EventIndex {
 public:
  // The open index in `file`, made of what `key` names; nothing: it is damaged, of another version, or of something else.
  static std::optional<EventIndex> open(Fd file, const std::string& key);

  // As EventLog. Nothing: it cannot be read any more.
  std::optional<PickedEvents> pick(std::size_t most, std::optional<std::pair<Nanos, Nanos>> window = {}) const;
  const EventTables& tables() const { return directory_.tables; }
  // A text that was kept with it; nothing: it cannot be read.
  std::optional<std::string> document() const { return read(document_); }
  u64 bytes() const;  // of the file

 private:
  friend class EventIndexWriter;
  EventIndex(Fd file, EventDirectory directory) : file_(std::move(file)), directory_(std::move(directory)) {}

  std::optional<std::string> read(const IndexExtent& place) const;
  // Calls take(event) for each of the block; false: it is damaged.
  template <typename Take>
  bool each_of(const EventDirectory::Block& block, Take&& take) const;
  bool pick_side(bool device, EventSide& side, Nanos middle, std::vector<EventStrip>& strips) const;
  u64 surely_inside(bool device, const EventSide& side) const;

  Fd file_;
  EventDirectory directory_;
  IndexExtent document_;
};

class EventIndexWriter : public EventNamer {
 public:
  static constexpr std::size_t kBlockEvents = 4096;
  // Into `file`, which is empty and open for reading too. More than `most_bytes` it does not write: then it has failed().
  EventIndexWriter(const LoadedRun& run, Fd file, u64 most_bytes);
  ~EventIndexWriter() override;

  bool failed() const override { return failed_; }
  // After the last event: what can be picked from. Nothing: it has failed.
  std::optional<EventIndex> finish();
  // Writes the rest, so that open() with this key reads it. False: it could not be written.
  static bool keep(EventIndex& index, const std::string& key, const std::string& document);

 private:
  struct Part;  // a block that is being filled
  void take(bool device, const LoggedEvent& event) override;
  void flush(u32 track, u32 length_class, Part& part);
  void flush_all();

  Fd file_;
  const u64 most_bytes_;
  const Nanos width_;
  u64 written_ = 0;
  bool failed_ = false;
  std::vector<std::vector<std::unique_ptr<Part>>> parts_;  // by track, by class
  std::size_t waiting_ = 0;                                // events in them
  std::vector<EventDirectory::Block> blocks_;
};

}  // namespace gputrace
