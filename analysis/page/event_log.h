// Keeps of a run's events those that are shown (picked_events.h), as they come; an index of them (event_index.h) keeps the same.
#pragma once

#include <optional>
#include <string>

#include "analysis/page/event_names.h"
#include "analysis/page/picked_events.h"

namespace gputrace {

class EventLog : public EventSink {
 public:
  // The run must outlive it.
  EventLog(const LoadedRun& run, std::size_t most, std::optional<std::pair<Nanos, Nanos>> window = {});

  void begin(const ExportProcess& process) override;
  void ran(const DeviceSlice& slice) override;
  void host(const HostSlice& slice) override;

  const PickedEvents& picked() const { return picked_; }
  const EventTables& tables() const { return names_.tables(); }

 private:
  // Of the process that is being told.
  struct Process {
    std::size_t place = 0;  // in the run
    DeviceSideNames devices;
    HostSideNames threads;
    SideNumbers device_numbers, thread_numbers;
  };
  void take(EventSide& side, const LoggedEvent& event);
  void add_outside(EventSide& side, const LoggedEvent& event);
  void narrow(EventSide& side);

  RunNames names_;
  const Nanos origin_, length_;
  const Nanos middle_;              // around which a window becomes narrower
  std::optional<Process> process_;  // nothing: it is not in the run
  PickedEvents picked_;
};

}  // namespace gputrace
