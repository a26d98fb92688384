#include "analysis/events/events.h"

#include <algorithm>

#include "analysis/events/device_events.h"
#include "analysis/events/host_events.h"
#include "analysis/events/run_outline.h"
#include "analysis/read/huge_pages.h"
#include "analysis/read/identity.h"
#include "analysis/read/kept_pages.h"

namespace gputrace {
namespace {

// A range may begin in one thread and end in another one: both in time, then.
RecordStream::Order order_for(const ProcessTrace& facts) {
  const auto is_across = [](const NvtxRangeTotals& range) { return range.across_threads; };
  return std::any_of(facts.nvtx.begin(), facts.nvtx.end(), is_across) ? RecordStream::Order::Time
                                                                      : RecordStream::Order::Threads;
}

constexpr u64 kTellHostEvery = 1u << 18;  // slices of the host between two words on progress

class Exporter {
 public:
  Exporter(const LoadRequest& request, TimeWindow window, EventSink& sink, ExportProgress* progress)
      : request_(request), window_(window), sink_(sink), progress_(progress), outline_(outline_of_run(request)) {}

  Result<Exported, InputError> run() {
    for (file_ = 0; file_ < request_.files.size() && !sink_.failed(); ++file_) one(request_.files[file_]);
    if (done_.processes > 0) return done_;
    if (!done_.unread.empty()) return Failure{InputError{done_.unread.front()}};
    return Failure{InputError{"no process of rank " + request_.rank.value_or("?") + " in these traces"}};
  }

 private:
  void one(const std::string& path) {
    auto opened = TraceReader::open(path);
    if (!opened) return done_.unread.push_back(describe(path, opened.error()));
    const TraceReader& reader = opened.value();
    ProcessTrace identity;
    read_identity(reader, identity);
    identity.who.file = path;
    identity.who.rank = outline_.ranks[file_];
    if (request_.rank && identity.who.rank != *request_.rank) return;
    const ExportProcess process =
        export_process(static_cast<u32>(done_.processes++), reader, identity.who, outline_.clock);
    sink_.begin(process);
    DeviceEvents devices(reader, process.shift, sink_, [&] { tell(devices_before_ + devices.slices()); });
    const ProcessTrace facts = load_process(reader, window_, {}, &devices);
    sink_.facts(facts);
    HostEvents host(reader, window_, &facts, process.shift, sink_);
    RecordStream stream(reader, devices.without_host(), order_for(facts));
    u64 told = 0;
    stream.for_each_span([&](const RecordStream::Span& span) {
      host.add(span);
      if (host.slices() - told >= kTellHostEvery) tell(devices_before_ + devices.slices() + (told = host.slices()));
      return !sink_.failed();
    });
    host.finish(facts.end);
    sink_.end();
    devices_before_ += devices.slices() + host.slices();
    done_.device_slices += devices.slices();
    done_.host_slices += host.slices();
    done_.bytes_read += reader.file_size();
    done_.dropped += facts.dropped;
    const std::string prefix = path + ": ";
    for (const std::string& damage : facts.damage) done_.damage.push_back(prefix + damage);
  }

  void tell(u64 events) {
    if (progress_) progress_->reached(file_, static_cast<u32>(request_.files.size()), events);
  }

  const LoadRequest& request_;
  const TimeWindow window_;
  EventSink& sink_;
  ExportProgress* const progress_;
  const RunOutline outline_;
  u32 file_ = 0;
  u64 devices_before_ = 0;
  Exported done_;
};

}  // namespace

Result<Exported, InputError> export_events(const LoadRequest& request, EventSink& sink, ExportProgress* progress) {
  LoadRequest whole = request;
  whole.steps.reset();
  const auto window = [&]() -> Result<TimeWindow, InputError> {
    if (!request.steps) return window_of(request);
    const auto run = load_run(whole);
    if (!run) return Failure{run.error()};
    return window_of_steps(steps_of(run.value()), *request.steps);
  }();
  if (!window) return Failure{window.error()};
  const KeptPages pages;
  ask_for_huge_pages(bytes_of(request.files));
  return Exporter(request, window.value(), sink, progress).run();
}

}  // namespace gputrace
