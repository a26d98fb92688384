// What events name, by number: first each side of a process by itself, while it is read, then all of them together.
//   · Numbers go by the order in which things come. Of lines and operations frames are told, which have names when the process is loaded.
//   · A side belongs to one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/events/events.h"
#include "analysis/lines/sites.h"
#include "analysis/page/picked_events.h"
#include "analysis/run/devices.h"

namespace gputrace {

class DeviceSideNames {
 public:
  struct Stream {
    i32 device = 0;
    u32 context = 0, stream = 0;
    bool operator==(const Stream&) const = default;
  };
  u32 track_of(const DeviceSlice& slice);
  u32 name_of(const DeviceSlice& slice);

  const std::vector<Stream>& tracks() const { return tracks_; }
  const std::vector<EventTables::Name>& names() const { return names_; }

 private:
  std::vector<Stream> tracks_;
  std::vector<EventTables::Name> names_;
  std::vector<u32> names_by_work_;
};

class HostSideNames {
 public:
  struct Lane {
    u32 thread = 0;
    bool across_threads = false;
  };
  struct Name {
    EventTables::Name known;
    u32 frame = 0;  // not 0: its function is the text
  };
  explicit HostSideNames(const ExportProcess& process);
  u32 track_of(const HostSlice& slice);
  u32 name_of(const HostSlice& slice);
  u32 site_of(const HostSlice& slice);  // 0: not known

  const std::vector<Lane>& tracks() const { return tracks_; }
  const std::vector<Name>& names() const { return names_; }
  const std::vector<u32>& sites() const { return sites_; }  // frames
  EventTables::Track described(const Lane& lane) const;

 private:
  std::vector<std::pair<i32, std::string>> threads_;
  std::vector<Lane> tracks_;
  std::vector<Name> names_;
  std::vector<u32> sites_{0};
  std::vector<u32> thread_tracks_, range_tracks_;  // by thread; kNone: it has none yet
  std::vector<u32> names_by_call_;
  std::unordered_map<std::string, u32> names_by_text_;
  std::unordered_map<u32, u32> names_by_frame_, sites_by_frame_;
  u32 newest_frame_ = 0, newest_site_ = 0;  // that was asked for last
};

// A side's numbers in the tables of the run.
struct SideNumbers {
  std::vector<u32> tracks, names, sites;
};

class RunNames {
 public:
  // The run must outlive it.
  explicit RunNames(const LoadedRun& run);
  // The place of the process with this file in the run.
  std::optional<std::size_t> place_of(const std::string& file) const;
  // Numbers those of the side that `numbers` does not have yet. `process`: its place in the run.
  void add(std::size_t process, const DeviceSideNames& side, SideNumbers& numbers);
  void add(std::size_t process, const HostSideNames& side, SideNumbers& numbers);
  const EventTables& tables() const { return tables_; }

 private:
  u32 name(EventTables::Name named);
  u32 site(const std::string& text);

  const LoadedRun& run_;
  const DeviceMap devices_;
  EventTables tables_;
  std::unordered_map<std::string, u32> names_by_text_, sites_by_text_;
  std::vector<std::optional<FileNames>> files_;  // by process
};

}  // namespace gputrace
