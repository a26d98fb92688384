#include "analysis/events/run_events.h"

#include "analysis/read/identity.h"

namespace gputrace {

class RunEvents::Both : public DeviceEvents {
 public:
  Both(const TraceReader& reader, TimeWindow window, Nanos shift, EventSink& sink)
      : DeviceEvents(reader, shift, sink), sink_(sink), host_(reader, window, nullptr, shift, sink) {}

  Wanted wants() const override { return Wanted::All; }
  void idled(const IdleGap&) override {}
  void recorded(const RecordStream::Span& span) override {
    if (!sink_.failed()) host_.add(span);
  }
  void finish(const ProcessTrace& process) {
    host_.finish(process.end);
    sink_.end();
  }

 private:
  EventSink& sink_;
  HostEvents host_;
};

RunEvents::RunEvents(const LoadRequest& request, const RunOutline& outline, EventSinks& sinks)
    : request_(request), outline_(outline), sinks_(sinks), processes_(request.files.size()) {}

RunEvents::~RunEvents() = default;

Witness* RunEvents::opened(std::size_t file, const TraceReader& reader, TimeWindow window) {
  ProcessTrace identity;
  read_identity(reader, identity);
  identity.who.file = request_.files[file];
  identity.who.rank = outline_.ranks[file];
  if (request_.rank && identity.who.rank != *request_.rank) return nullptr;
  const ExportProcess process = export_process(static_cast<u32>(file), reader, identity.who, outline_.clock);
  EventSink* const sink = sinks_.sink(file, process);
  if (!sink) return nullptr;
  processes_[file] = std::make_unique<Both>(reader, window, process.shift, *sink);
  return processes_[file].get();
}

void RunEvents::loaded(std::size_t file, const ProcessTrace& process) {
  processes_[file]->finish(process);
  processes_[file].reset();  // the reader goes
}

}  // namespace gputrace
