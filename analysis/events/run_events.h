// The events of a run while it is loaded: one reading of the traces for reports and for what shows the events.
#pragma once

#include <memory>
#include <vector>

#include "analysis/events/device_events.h"
#include "analysis/events/events.h"
#include "analysis/events/host_events.h"
#include "analysis/events/run_outline.h"
#include "analysis/load.h"

namespace gputrace {

class RunEvents : public RunWitness {
 public:
  // All must outlive it.
  RunEvents(const LoadRequest& request, const RunOutline& outline, EventSinks& sinks);
  ~RunEvents() override;

  Witness* opened(std::size_t file, const TraceReader& reader, TimeWindow window) override;
  void loaded(std::size_t file, const ProcessTrace& process) override;

 private:
  // Both sides of a process.
  class Both;

  const LoadRequest& request_;
  const RunOutline& outline_;
  EventSinks& sinks_;
  std::vector<std::unique_ptr<Both>> processes_;  // by file, while it is read
};

}  // namespace gputrace
