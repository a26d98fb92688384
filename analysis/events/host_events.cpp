#include "analysis/events/host_events.h"

#include <algorithm>

#include "analysis/read/record_view.h"

namespace gputrace {
namespace {

// Whether a device does something for it.
bool gives_work(const RecordHeader& record) {
  if (record.result != 0) return false;
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::KernelLaunch:
      return !(RecordView<KernelLaunch>(record)->flags & kLaunchCaptured);
    case RecordType::GraphLaunch:
    case RecordType::Copy:
    case RecordType::Memset:
      return true;
    default:
      return false;
  }
}

}  // namespace

HostEvents::HostEvents(const TraceReader& reader, TimeWindow window, const ProcessTrace* facts, Nanos shift,
                       EventSink& sink)
    : reader_(reader),
      window_(window),
      facts_(facts),
      shift_(shift),
      sink_(sink),
      clock_(reader.clock()),
      names_(facts ? std::optional<FileNames>(*facts) : std::nullopt),
      threads_(reader.threads().size()) {}

TypeSet HostEvents::types_of(const TraceReader& reader) {
  TypeSet types;
  for (const RecordType one : {RecordType::Operation, RecordType::Nvtx}) types.add(static_cast<u16>(one));
  types.add(TypeSet::kOthers);  // numbers that are not small: nobody tells of which class
  for (u16 type = 0; type < TypeSet::kOthers; ++type) {
    const RecordClass what = reader.schema().class_of(type);
    if (what == RecordClass::Call || what == RecordClass::Library) types.add(type);
  }
  return types;
}

void HostEvents::add(const RecordStream::Span& span) {
  for (const u8* at = span.begin; at != span.end;) {
    const auto& record = *reinterpret_cast<const RecordHeader*>(at);
    add(record, span.thread);
    at += record.size;
  }
}

void HostEvents::add(const RecordHeader& record, u32 thread) {
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::Stack:
      threads_[thread].frame = decode<Stack>(record).frame;
      return;
    case RecordType::Gap:
      threads_[thread].frame = 0;
      return;
    case RecordType::Operation:
      return on_operation(decode<Operation>(record), thread);
    case RecordType::Nvtx:
      return on_nvtx(decode<Nvtx>(record), thread);
    default:
      break;
  }
  const RecordClass what = reader_.schema().class_of(record.type);
  if (record.call != 0 && (what == RecordClass::Call || what == RecordClass::Library)) on_call(record, thread);
}

// The definitions come from all threads; some of their records tell which.
u32 HostEvents::thread_of(const RecordHeader& record, u32 lane) const {
  if (reader_.threads()[lane].tid != 0) return lane;
  u32 tid = 0;
  if (record.type == static_cast<u16>(RecordType::ModuleLoad)) tid = decode<ModuleLoad>(record).thread;
  if (record.type == static_cast<u16>(RecordType::FunctionGet)) tid = decode<FunctionGet>(record).thread;
  for (std::size_t i = reader_.threads().size(); tid != 0 && i-- > 0;) {
    const ThreadInfo& known = reader_.threads()[i];
    const bool lived = known.begin <= record.end && (known.end == 0 || known.end >= record.begin);
    if (static_cast<u32>(known.tid) == tid && lived) return static_cast<u32>(i);
  }
  return lane;
}

void HostEvents::on_call(const RecordHeader& record, u32 lane) {
  ThreadState& own = threads_[lane];
  if (own.last_call == record.call && own.last_begin == record.begin && own.last_end == record.end) return;
  own.last_call = record.call, own.last_begin = record.begin, own.last_end = record.end;
  HostSlice slice;
  slice.begin = clock_.nanos(record.begin);
  slice.end = record.end <= record.begin ? slice.begin : std::max(slice.begin, clock_.nanos(record.end));
  if (slice.begin < window_.from || slice.begin >= window_.to) return;
  slice.thread = thread_of(record, lane);
  if (gives_work(record)) slice.flow = flow_of(lane, slice.begin);
  slice.call = record.call;
  slice.result = record.result;
  if (const TraceCall* call = reader_.schema().call(record.call)) slice.name = call->name, slice.level = call->level;
  slice.frame = own.frame;
  if (facts_) slice.site = site_of(own.frame);
  give(slice);
}

void HostEvents::on_operation(const Operation& value, u32 thread) {
  if (value.frame == 0 || (facts_ && value.frame >= facts_->lines.frames.size())) return;
  HostSlice slice;
  slice.kind = HostKind::Operation;
  slice.begin = clock_.nanos(value.header.begin);
  slice.end = std::max(slice.begin, clock_.nanos(value.header.end));
  if (slice.begin < window_.from || slice.begin >= window_.to) return;
  slice.frame = value.frame;
  if (facts_) slice.name = facts_->lines.frames[value.frame].function;
  slice.thread = thread;
  give(slice);
}

void HostEvents::on_nvtx(const Nvtx& value, u32 thread) {
  const Nanos at = clock_.nanos(value.header.begin);
  const bool before = (value.flags & kNvtxOpenBefore) != 0;
  const OpenRange range{at, value.message, value.domain, value.category, value.color, thread, before};
  newest_ = std::max(newest_, at);
  auto& pushed = threads_[thread].pushed[value.domain];
  switch (static_cast<NvtxAct>(value.what)) {
    case NvtxAct::Push:
      pushed.push_back(range);
      return;
    case NvtxAct::Pop:
      if (pushed.empty()) return;
      close(pushed.back(), at, false, pushed.back().before);
      pushed.pop_back();
      return;
    case NvtxAct::Start:
      started_[value.range] = range;
      return;
    case NvtxAct::End:
      if (const auto known = started_.find(value.range); known != started_.end()) {
        close(known->second, at, true, known->second.before);
        started_.erase(known);
      }
      return;
    case NvtxAct::Mark: {
      HostSlice slice;
      slice.kind = HostKind::Mark;
      slice.begin = slice.end = at;
      if (at < window_.from || at >= window_.to) return;
      slice.name = reader_.texts().find(value.message);
      slice.level = reader_.texts().find(value.domain);
      slice.thread = thread;
      slice.category = value.category, slice.color = value.color;
      return give(slice);
    }
  }
}

void HostEvents::close(const OpenRange& range, Nanos end, bool across, bool open) {
  if (range.begin < window_.from || range.begin >= window_.to) return;
  HostSlice slice;
  slice.kind = HostKind::Range;
  slice.begin = range.begin, slice.end = std::max(range.begin, end);
  slice.name = reader_.texts().find(range.message);
  slice.level = reader_.texts().find(range.domain);
  slice.thread = range.thread;
  slice.category = range.category, slice.color = range.color;
  slice.across_threads = across;
  slice.open = open;
  give(slice);
}

void HostEvents::finish(Nanos process_end) {
  const Nanos end = std::max(newest_, process_end);
  for (ThreadState& thread : threads_) {
    for (auto& [domain, pushed] : thread.pushed) {
      for (; !pushed.empty(); pushed.pop_back()) close(pushed.back(), end, false, true);
    }
  }
  for (const auto& [id, range] : started_) close(range, end, true, true);
  started_.clear();
}

std::string_view HostEvents::site_of(u32 frame) {
  if (frame == 0) return {};
  const auto known = sites_.find(frame);
  if (known != sites_.end()) return known->second;
  const SourceFrames& frames = facts_->lines.frames;
  return sites_.emplace(frame, site_name(frames, own_frame(frames, frame), *names_)).first->second;
}

void HostEvents::give(HostSlice& slice) {
  newest_ = std::max(newest_, slice.end);
  slice.begin += shift_, slice.end += shift_;
  ++slices_;
  sink_.host(slice);
}

}  // namespace gputrace
