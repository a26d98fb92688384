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
#pragma once

#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/export/events.h"
#include "analysis/run/devices.h"

namespace gputrace {

// How busy a track was with events that were not kept, piece by piece of time.
struct EventStrip {
  static constexpr std::size_t kMostPieces = 4096;
  struct Piece {
    u64 busy_ns = 0, count = 0;
  };
  Nanos from = 0, width = 1 << 16;
  std::vector<Piece> pieces;

  void add(Nanos begin, Nanos end);

 private:
  void widen(Nanos begin, Nanos end);
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

class EventLog : public EventSink {
 public:
  struct Track {
    std::size_t process = 0;  // in the run
    const char* kind = "";    // "thread", "ranges" (those that do not nest), "stream"
    std::string label;
    i64 id = 0;
    Value device;
    EventStrip strip;
  };
  struct Name {
    std::string text, kind, whole, detail;
  };

  // Keeps `most` events of the run, which must outlive it. `window`: of that time all of them, where they are not too many.
  EventLog(const LoadedRun& run, std::size_t most, std::optional<std::pair<Nanos, Nanos>> window = {});

  void begin(const ExportProcess& process) override;
  void ran(const DeviceSlice& slice) override;
  void host(const HostSlice& slice) override;
  void end() override;

  const EventSide& host_side() const { return host_; }
  const EventSide& device_side() const { return device_; }
  const std::vector<Track>& tracks() const { return tracks_; }
  const std::vector<Name>& names() const { return names_; }
  const std::vector<std::string>& sites() const { return sites_; }  // the first: not known

 private:
  void add(EventSide& side, const LoggedEvent& event);
  void add_outside(EventSide& side, const LoggedEvent& event);
  void narrow(EventSide& side);
  u32 track(const char* kind, std::tuple<i32, u32, u32> key);
  u32 name_of(const DeviceSlice& slice);
  u32 name_of(const HostSlice& slice);
  u32 name(Name named);
  u32 site_of(std::string_view site);

  const LoadedRun& run_;
  const DeviceMap devices_;
  const Nanos origin_;
  const Nanos middle_;  // around which a window becomes narrower
  EventSide host_, device_;
  std::vector<Track> tracks_;
  std::vector<Name> names_;
  std::vector<std::string> sites_{""};
  std::unordered_map<std::string, u32> names_by_text_, sites_by_text_;
  // Of the process that is being told.
  std::optional<std::size_t> process_;  // nothing: it is not in the run
  std::vector<std::pair<i32, std::string>> threads_;
  std::vector<std::pair<std::tuple<const char*, i32, u32, u32>, u32>> known_tracks_;
  std::unordered_map<const void*, u32> names_by_address_, sites_by_address_;  // of texts that live until end()
  std::vector<u32> names_by_call_;
};

}  // namespace gputrace
