// The events of a run as the page's timeline shows them, in bounded memory: exact while there are few. Of more, those of a window in the
// middle of the run stay exact, and of the rest the longest; the others are told as how much of the time they took.
//
//   in the window ──▶ kept as it is; too many: the window is halved
//   event ──┤
//   long ───────────▶ kept as it is; too many: what counts as short is doubled
//   short ──────────▶ strip of its track: busy time and count, in equal pieces of time
//
//   · Host and device have limits and bounds of their own. Instants are ns from the run's origin.
//   · Nothing is lost without a number: left_out and the strips say what is not shown one by one.
//   · event_log.h picks them from what comes, event_index.h from a file.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gputrace {

// How busy a track was with events that were not kept, piece by piece of time. All strips of a run have the same pieces: their width is told
// by the run's length, and they begin at multiples of it on the clock, so that finer ones make wider ones wherever the run begins. What is
// outside of the run's time goes to the first or the last one.
struct EventStrip {
  static constexpr std::size_t kMostPieces = 4096;
  struct Piece {
    u64 busy_ns = 0, count = 0;
  };
  static Nanos width_of(Nanos run_length);  // ns
  // The multiple of a width, a power of two, at or before an instant.
  static Nanos aligned(Nanos instant, Nanos width) { return instant & ~(width - 1); }
  // Of a run that begins at `origin` on the clock: add() takes ns from there.
  static EventStrip of_run(Nanos run_length, Nanos origin);

  Nanos width = 1 << 16;
  Nanos begin = 0;        // of the first piece that there can be
  std::size_t first = 0;  // of `pieces`, counted from there
  std::vector<Piece> pieces;
  std::size_t most = kMostPieces;

  void add(Nanos from, Nanos to) { change(from - begin, to - begin, false); }
  void take_away(Nanos from, Nanos to) { change(from - begin, to - begin, true); }  // what was added
  void add(std::size_t piece, Piece sum);

 private:
  void change(Nanos from, Nanos to, bool less);
  Piece& at(std::size_t piece);
};

struct LoggedEvent {
  Nanos begin = 0, end = 0;
  u64 flow = 0;    // as DeviceSlice and HostSlice have it
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

}  // namespace gputrace
