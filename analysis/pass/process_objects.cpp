// ProcessBuilder: what things are (devices, contexts, versions), and their coming and going (modules, graphs,
// contexts).
#include <algorithm>
#include <cstdio>

#include "analysis/pass/process_builder.h"

namespace gputrace {

constexpr std::size_t kMostNotes = 1000, kMostNoteBytes = 2000;

void ProcessBuilder::add_definition(const RecordHeader& record) {
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::FunctionFacts:
      return functions_.described(decode<FunctionFacts>(record));
    case RecordType::Communicator:
      return timeline_.communicator(decode<Communicator>(record));
    case RecordType::DeviceFacts:
      return on_device(decode<DeviceFacts>(record));
    case RecordType::ContextFacts: {
      const auto value = decode<ContextFacts>(record);
      const u32 known = context_index(value.context);
      const i32 device = device_of(known);
      if (device == -1 || device == value.device) return context_is_on(known, value.device);
      contexts_by_handle_.erase(value.context);  // the handle was given out again
      ++contexts_version_;
      foreseen_devices_[value.context] = value.device;
      context_index(value.context);
      return;
    }
    case RecordType::ProcessFacts: {
      const auto value = decode<ProcessFacts>(record);
      facts_.who.driver_version = value.driver_version;
      facts_.who.runtime_version = value.runtime_version;
      facts_.who.device_count = value.devices;
      facts_.who.driver_path = std::string(reader_.texts().find(value.driver_path));
      facts_.who.runtime_path = std::string(reader_.texts().find(value.runtime_path));
      return;
    }
    case RecordType::CodeImage:
      functions_.has_image(decode<CodeImage>(record));
      return facts_.code_coverage.add(decode<CodeImage>(record));
    case RecordType::CodeKernel:
      return code_.kernel(decode<CodeKernel>(record));
    case RecordType::CodeScan:
      return facts_.code_coverage.add(decode<CodeScan>(record));
    case RecordType::StackFrame:
      return on_stack_frame(decode<StackFrame>(record));
    case RecordType::NativeFrame:
      return on_native_frame(decode<NativeFrame>(record));
    case RecordType::Note: {
      const auto text = reader_.texts().find(decode<Note>(record).text);
      if (!text.empty() && facts_.notes.size() < kMostNotes) facts_.notes.emplace_back(text.substr(0, kMostNoteBytes));
      return;
    }
    default:
      return;
  }
}

// Each frame has a copy of its texts: names of honest programs are short, and of what is beyond kMostFrameTexts the end will do.
std::string_view ProcessBuilder::frame_text(u64 id) {
  constexpr std::size_t kMostFrameText = 3072, kShort = 48, kMostFrameTexts = 16u << 20;
  const std::string_view text = reader_.texts().find(id);
  const std::size_t most = frame_text_bytes_ < kMostFrameTexts ? kMostFrameText : kShort;
  const std::string_view kept = text.substr(text.size() - std::min(text.size(), most));
  frame_text_bytes_ += kept.size();
  return kept;
}

void ProcessBuilder::on_stack_frame(const StackFrame& value) {
  if (HostSamples::is_sampled_frame(value))
    return samples_.frame(value, frame_text(value.function), frame_text(value.file));
  if (value.id == 0 || value.id >= kMostStackFrames) return;
  SourceFrame* const frame = new_frame(facts_.lines.frames, value.id, value.parent);
  if (!frame) return;
  frame->function = std::string(frame_text(value.function));
  frame->file = std::string(frame_text(value.file));
  frame->line = value.line;
}

void ProcessBuilder::on_native_frame(const NativeFrame& value) {
  if (value.id == 0 || value.id >= kMostStackFrames) return;
  const u64 key = value.object * 0x9e3779b97f4a7c15ull ^ value.build_id;
  const auto known = native_objects_.find(key);
  u32 object = 0;
  if (known != native_objects_.end()) {
    object = known->second;
  } else {
    if (facts_.lines.objects.size() == kMostNativeObjects) return;
    object = static_cast<u32>(facts_.lines.objects.size());
    facts_.lines.objects.push_back({std::string(frame_text(value.object)), std::string(frame_text(value.build_id))});
    native_objects_.emplace(key, object);
  }
  if (!new_frame(facts_.lines.frames, value.id, value.parent)) return;
  if (facts_.lines.native.size() < kMostStackFrames) facts_.lines.native.push_back({value.id, object, value.offset});
}

void ProcessBuilder::on_stack(const Stack& value, u32 thread) {
  threads_[thread].told = {value.frame < kMostStackFrames ? value.frame : 0,
                           value.operation < kMostStackFrames ? value.operation : 0};
  find_origin(thread);
}

// A stack may name a frame of which no record came: its calls are of a place that is not known. Before other frames get its number;
// those of XLA's operations, from kMostStackFrames on, get theirs later.
void ProcessBuilder::forget_untold_frames() {
  const auto is_untold = [frames = facts_.lines.frames.size()](u32 frame) {
    return frame >= frames && frame < kMostStackFrames;
  };
  for (CallOrigin& origin : facts_.lines.origins) {
    if (is_untold(origin.frame)) origin.frame = 0;
    if (is_untold(origin.operation)) origin.operation = 0;
  }
}

// From where the thread makes the calls that follow. Those that it has made count for where it was.
void ProcessBuilder::set_origin(ThreadState& thread, u32 origin) {
  if (thread.usual_launches != 0) {
    StackTotals& totals = entry_at(facts_.lines.totals, thread.stack);
    totals.calls += thread.usual_launches;
    totals.launches += thread.usual_launches;
    thread.usual_launches = 0;
  }
  thread.stack = origin;
}

void ProcessBuilder::find_origin(u32 number) {
  ThreadState& thread = threads_[number];
  CallOrigin origin = thread.told;
  if (origin.operation == 0) origin.operation = xla_.innermost(number);
  set_origin(thread, 0);
  if (origin.frame == 0 && origin.operation == 0) return;
  const u64 key = static_cast<u64>(origin.operation) << 32 | origin.frame;
  const auto known = origins_.find(key);
  if (known != origins_.end()) {
    thread.stack = known->second;
  } else if (facts_.lines.origins.size() < kMostOrigins) {
    thread.stack = static_cast<u32>(facts_.lines.origins.size());
    facts_.lines.origins.push_back(origin);
    origins_.emplace(key, thread.stack);
  }
}

void ProcessBuilder::on_own_work(const RecordHeader& record, u32 thread) {
  const auto [begin, end] = clock_.span(record);
  const u64 self = threads_[thread].own_work.self_time(begin, end);
  timeline_.own_work(thread, begin, end, begin >= window_.from && begin < window_.to ? self : 0);
}

void ProcessBuilder::on_device(const DeviceFacts& value) {
  if (!ordinals_.insert(value.device).second) return;
  Device device;
  device.ordinal = value.device;
  device.name = std::string(reader_.texts().find(value.name));
  u8 bytes[16];
  std::memcpy(bytes, &value.uuid_low, 8);
  std::memcpy(bytes + 8, &value.uuid_high, 8);
  char text[48];
  std::snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", bytes[0],
                bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10],
                bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]);
  if (value.uuid_low || value.uuid_high) device.uuid = text;
  device.memory_bytes = value.memory_bytes;
  device.sms = value.sms;
  device.capability_major = value.capability_major;
  device.capability_minor = value.capability_minor;
  device.clock_khz = value.clock_khz;
  device.pci_domain = value.pci_domain;
  device.pci_bus_device = value.pci_bus_device;
  device.limits = {value.capability_major, value.max_threads_per_sm,  value.max_blocks_per_sm,
                   value.registers_per_sm, value.shared_bytes_per_sm, value.reserved_shared_bytes,
                   value.warp_size};
  facts_.devices.push_back(std::move(device));
}

// A context that was destroyed takes its memory with it; a reset of a primary context names its device alone.
void ProcessBuilder::on_context(const ObjectCall& value, Nanos at) {
  const auto what = static_cast<ObjectAct>(value.what);
  if (value.object != 0 && value.value >= 0 && (what == ObjectAct::Created || what == ObjectAct::Retained)) {
    const u32 context = context_index(value.object);
    if (device_of(context) < 0) context_is_on(context, static_cast<i32>(value.value));
  }
  if (what != ObjectAct::Destroyed) return;
  ++contexts_version_;
  for (auto it = contexts_by_handle_.begin(); it != contexts_by_handle_.end();) {
    const bool meant =
        value.object != 0 ? it->first == value.object : facts_.contexts[it->second].device == value.value;
    if (!meant) {
      ++it;
      continue;
    }
    ledger_.context_destroyed(it->second, at);
    // A created context's handle may come to mean another one; a primary context's stays.
    if (value.object != 0) foreseen_devices_.erase(it->first);
    it = value.object != 0 ? contexts_by_handle_.erase(it) : std::next(it);
  }
}

void ProcessBuilder::on_object(const Moment& at) {
  const auto value = decode<ObjectCall>(at.record);
  if (value.header.result != 0) return;
  const auto kind = static_cast<ObjectKind>(value.kind);
  if (kind == ObjectKind::Context) return on_context(value, at.begin);
  if (static_cast<ObjectAct>(value.what) == ObjectAct::Queried) return on_query(at, value);
  timeline_.object(value);
  if (kind == ObjectKind::Stream && static_cast<ObjectAct>(value.what) == ObjectAct::Created && value.parent)
    stream_contexts_[value.object] = value.parent;
  if (kind == ObjectKind::Stream && static_cast<ObjectAct>(value.what) == ObjectAct::Destroyed)
    stream_contexts_.erase(value.object);
  if (static_cast<ObjectAct>(value.what) != ObjectAct::Destroyed) return;
  switch (kind) {
    case ObjectKind::Graph:
      return graphs_.graph_gone(value.object);
    case ObjectKind::GraphExec:
      timeline_.graph_is_gone(value.object);
      return graphs_.exec_gone(value.object,
                               [this](const auto& node, u32 context, u64 times) { replayed(node, context, times); });
    case ObjectKind::Module:
    case ObjectKind::Library:
      return functions_.module_unloaded(value.object, value.header.begin);
    default:
      return;
  }
}

void ProcessBuilder::on_instantiate(const GraphInstantiate& value) {
  if (value.header.result != 0) return;
  graphs_.instantiated(value, [this](const auto& node, u32 context, u64 times) { replayed(node, context, times); });
  const GraphTable::Version version = graphs_.version_of(value.exec);
  timeline_.graph_is_new(value.exec, version.number, version.own_nodes);
}

void ProcessBuilder::on_graph_node(const GraphNode& value) {
  const u32 function = value.kind == GraphTable::kKernelNode ? functions_.find(value.function) : kNone;
  graphs_.node(value, function, [this](const auto& node, u32 context, u64 times) { replayed(node, context, times); });
  if (value.header.result != 0) return;
  const GraphTable::NodeOf node = graphs_.node_of(value.exec, value.node);
  timeline_.node_is(graphs_.version_of(value.exec).number, value.node, node.function, node.origin);
}

void ProcessBuilder::on_module(const Moment& at) {
  const auto value = decode<ModuleLoad>(at.record);
  if (value.header.result != 0) return;
  if (static_cast<ModuleAct>(value.what) == ModuleAct::Unload)
    return functions_.module_unloaded(value.module, value.header.begin);
  functions_.module_loaded(value);
  if (!at.counted) return;
  const ThreadState* const caller = caller_of(at.record);  // the record lies among the definitions
  const u32 origin = caller ? caller->stack : 0;
  for (ModuleLoads& known : facts_.module_loads) {
    if (known.what != static_cast<ModuleAct>(value.what) || known.image != static_cast<ImageKind>(value.image))
      continue;
    known.time_by_origin.add(origin, at.duration());
    ++known.count;
    known.bytes += value.bytes;
    known.total_ns += at.duration();
    known.max_ns = std::max(known.max_ns, at.duration());
    return;
  }
  facts_.module_loads.push_back({static_cast<ModuleAct>(value.what),
                                 static_cast<ImageKind>(value.image),
                                 value.bytes,
                                 1,
                                 at.duration(),
                                 at.duration(),
                                 {}});
  facts_.module_loads.back().time_by_origin.add(origin, at.duration());
}

}  // namespace gputrace
