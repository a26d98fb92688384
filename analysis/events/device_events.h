// The devices' side of one trace as slices, on the timeline's thread: what a timeline makes is told on.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "analysis/events/events.h"
#include "analysis/timeline/witness.h"
#include "trace/reader.h"

namespace gputrace {

class DeviceEvents : public Witness {
 public:
  // `told`: called now and then.
  DeviceEvents(const TraceReader& reader, Nanos shift, EventSink& sink, std::function<void()> told = {})
      : reader_(reader), shift_(shift), sink_(sink), told_(std::move(told)) {}

  Wanted wants() const override { return sink_.wants_sums() ? Wanted::Sums : Wanted::Operations; }
  void ran(const DeviceOperation& operation, const DeviceShape& shape, const HostOperation* call,
           const DeviceActivity& activity) override;
  void idled(const IdleGap& gap) override;
  void read(const RecordStream& stream) override;

  // Threads that hold nothing of the host's side, as those that collect from devices.
  const std::vector<bool>& without_host() const { return without_host_; }
  u64 slices() const { return slices_; }

 private:
  const DeviceWork* work_of(u32 number, const DeviceShape& shape);

  const TraceReader& reader_;
  const Nanos shift_;
  EventSink& sink_;
  const std::function<void()> told_;
  std::vector<bool> without_host_;
  std::vector<std::unique_ptr<DeviceWork>> works_;  // by the number of their shape
  u64 slices_ = 0;
};

}  // namespace gputrace
