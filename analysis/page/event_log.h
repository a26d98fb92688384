// The events of a run for the page's timeline, in bounded memory: exact while there are few. Of more, those of a window in the middle of the
// run stay exact, and of the rest the longest; the others are told as how much of the time they took.
//
//   in the window ──▶ kept as it is; too many: the window is halved
//   event ──┤
//   long ───────────▶ kept as it is; too many: what counts as short is doubled
//   short ──────────▶ strip of its track: busy time and count, in equal pieces of time
//
//   · Host and device have limits and bounds of their own. Instants are ns from the run's origin.
//   · Nothing is lost without a number: left_out and the strips say what is not shown one by one.
//   · What is kept does not depend on the order in which events come: an index of them (event_index.h) keeps the same.
#pragma once

#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/export/events.h"
#include "analysis/run/devices.h"

namespace gputrace {

// How busy a track was with events that were not kept, piece by piece of time. All strips of a run have the same pieces: they begin at
// multiples of a width that is told by the run's length. What is outside of the run's time goes to the first or the last one.
struct EventStrip {
  static constexpr std::size_t kMostPieces = 4096;
  struct Piece {
    u64 busy_ns = 0, count = 0;
  };
  static Nanos width_of(Nanos run_length);  // ns

  Nanos width = 1 << 16;
  std::size_t first = 0;  // of `pieces`, counted from the run's begin
  std::vector<Piece> pieces;

  void add(Nanos begin, Nanos end) { change(begin, end, false); }
  void take_away(Nanos begin, Nanos end) { change(begin, end, true); }  // what was added
  void add(std::size_t piece, Piece sum);

 private:
  void change(Nanos begin, Nanos end, bool less);
  Piece& at(std::size_t piece);
};

struct LoggedEvent {
  Nanos begin = 0, end = 0;
  u64 flow = 0;    // as EventSink has it
  u64 amount = 0;  // device: bytes; host: result
  u32 track = 0, name = 0, site = 0;
};

struct EventSide {
  std::size_t most = 0;                      // events kept
  std::vector<LoggedEvent> inside, longest;  // of the window; of the rest
  Nanos shortest = 0;                        // of those kept outside of the window; 0: none was left out
  Nanos begin = std::numeric_limits<Nanos>::min(), end = std::numeric_limits<Nanos>::max();  // the window
  u64 left_out = 0;

  bool whole() const { return end == std::numeric_limits<Nanos>::max(); }
};

// What events name by number, in the order in which it came.
struct EventTables {
  struct Process {
    i64 pid = 0;
    std::string rank, host, executable;
  };
  struct Track {
    std::size_t process = 0;
    std::string kind;  // "thread", "ranges" (those that do not nest), "stream"
    std::string label;
    i64 id = 0;
    std::optional<i64> device;  // number in the run
    bool is_device() const { return kind == "stream"; }
  };
  struct Name {
    std::string text, kind, whole, detail;
  };
  std::vector<Process> processes;
  std::vector<Track> tracks;
  std::vector<Name> names;
  std::vector<std::string> sites{""};  // the first: not known
  Nanos length = 0;                    // of the run
};

// What is shown of them.
struct PickedEvents {
  EventSide host, device;
  std::vector<EventStrip> strips;  // by track; none at the end: nothing was left out

  // Keeps `most` events in all. `window`: of that time all of them, where they are not too many.
  PickedEvents(std::size_t most, std::optional<std::pair<Nanos, Nanos>> window);
};

// Half as wide, around `middle`; at first half of the run, which takes `length`.
void narrow_window(EventSide& side, Nanos middle, Nanos length);

// Events as numbers.
class EventNamer : public EventSink {
 public:
  // The run must outlive it.
  explicit EventNamer(const LoadedRun& run);

  void begin(const ExportProcess& process) override;
  void ran(const DeviceSlice& slice) override;
  void host(const HostSlice& slice) override;
  void end() override;

  const EventTables& tables() const { return tables_; }

 protected:
  virtual void take(bool device, const LoggedEvent& event) = 0;
  EventTables tables_;

 private:
  u32 new_track(const char* kind);
  u32 track_of(const DeviceSlice& slice);
  u32 track_of(const HostSlice& slice);
  u32 name_of(const DeviceSlice& slice);
  u32 name_of(const HostSlice& slice);
  u32 name(EventTables::Name named);
  u32 site_of(std::string_view site);

  const LoadedRun& run_;
  const DeviceMap devices_;
  const Nanos origin_;
  std::unordered_map<std::string, u32> names_by_text_, sites_by_text_;
  // Of the process that is being told.
  std::optional<std::size_t> process_;  // nothing: it is not in the run
  std::vector<std::pair<i32, std::string>> threads_;
  std::vector<std::pair<std::tuple<i32, u32, u32>, u32>> stream_tracks_;      // by device, context and stream
  std::vector<u32> thread_tracks_, range_tracks_;                             // by thread; kNone: it has none yet
  std::unordered_map<const void*, u32> names_by_address_, sites_by_address_;  // of texts that live until end()
  std::vector<u32> names_by_call_;
  const char* newest_site_ = nullptr;  // the text that was asked for last, and its number
  u32 newest_site_number_ = 0;
};

class EventLog : public EventNamer {
 public:
  EventLog(const LoadedRun& run, std::size_t most, std::optional<std::pair<Nanos, Nanos>> window = {});

  const PickedEvents& picked() const { return picked_; }

 private:
  void take(bool device, const LoggedEvent& event) override;
  void add_outside(EventSide& side, const LoggedEvent& event);
  void narrow(EventSide& side);

  const Nanos middle_;  // around which a window becomes narrower
  PickedEvents picked_;
};

}  // namespace gputrace
