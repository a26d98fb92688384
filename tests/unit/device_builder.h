// A TraceBuilder with a device: what CUPTI would have reported, in its order and on its clock.
//
//   DeviceBuilder trace;
//   auto main = trace.thread(100);
//   trace.reading(1000);
//   trace.launch(main, 0xf1, 2000, 2100, 7);                    // call, and its key: correlation id 7
//   trace.kernel(7, 3000, 3500, 3600);                          // ran 3000..3500, the record was handled at 3600
#pragma once

#include "tests/unit/trace_builder.h"
#include "trace/key_calls.h"

namespace gputrace::test {

class DeviceBuilder : public TraceBuilder {
 public:
  // Of a Python stack.
  void frame(u32 id, u32 parent, const char* function, const char* file, u32 line) {
    const u64 name = text(function), path = text(file);
    add<StackFrame>(definitions(), "", 2, 2, [&](auto& r) {
      r.function = name, r.file = path, r.id = id, r.parent = parent, r.line = line, r.first_line = 1;
      r.language = static_cast<u32>(SourceLanguage::Python);
    });
  }
  // CUPTI's clock is ours plus `offset`.
  explicit DeviceBuilder(i64 offset = 0) : offset_(offset), collector_(thread(9000)) {
    device(0, 80ull << 30, 0xc0);
    state(DeviceCollection::On, "CUPTI 13.0 of the test", 2);
  }

  u64 on_device(Nanos time) const { return static_cast<u64>(time + offset_); }
  Thread collector() const { return collector_; }
  void set_offset(i64 offset) { offset_ = offset; }

  void state(DeviceCollection state, const std::string& reason, Nanos at) {
    const u64 words = text(reason);
    add<DeviceState>(definitions(), "", at, at, [&](auto& r) {
      r.reason = words, r.state = static_cast<u32>(state), r.version = 130000, r.kinds = 1ull << 10 | 1ull << 17;
    });
  }
  // Our two stamps are `around` apart from the middle.
  void reading(Nanos at, Nanos around = 0) {
    add<DeviceClock>(collector_, "", at - around, at + around, [&](auto& r) { r.device = on_device(at); });
  }
  void stream(u64 handle, u32 id, Nanos at = 3) {
    add<DeviceStream>(definitions(), "", at, at,
                      [&](auto& r) { r.stream = handle, r.context_handle = 0xc0, r.context = 1, r.id = id; });
  }
  // A stream that does not wait for the legacy default stream.
  void independent(u64 handle) {
    add<ObjectCall>(definitions(), "cuStreamCreate", 4, 4, [&](auto& r) {
      r.object = handle, r.value = 1, r.kind = static_cast<u32>(ObjectKind::Stream);
      r.what = static_cast<u32>(ObjectAct::Created);
    });
  }
  void key(i32 tid, u32 correlation, Nanos begin, Nanos end, Nanos handled, u32 callback = kCallback_cuLaunchKernel,
           u32 level = 1) {
    add<DeviceApi>(collector_, "", handled, handled, [&](auto& r) {
      r.start = on_device(begin), r.finish = on_device(end), r.correlation = correlation;
      r.thread = static_cast<u32>(tid), r.callback = callback, r.level = level;
    });
  }
  void launch(Thread thread, u64 function, Nanos begin, Nanos end, u64 stream = 0, u32 grid = 8, u32 flags = 0) {
    add<KernelLaunch>(thread, "cuLaunchKernel", begin, end, [&](auto& r) {
      r.function = function, r.context = 0xc0, r.stream = stream, r.flags = flags;
      r.grid_x = grid, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1;
    });
  }
  void kernel(u32 correlation, u64 name, Nanos start, Nanos finish, Nanos handled, u32 stream = 7, u32 grid = 8,
              u32 graph = 0, u64 node = 0) {
    add<DeviceKernel>(collector_, "", handled, handled, [&](auto& r) {
      r.start = on_device(start), r.finish = on_device(finish), r.name = name, r.correlation = correlation;
      r.context = 1, r.stream = stream, r.graph = graph, r.graph_node = node, r.registers = 40;
      r.grid_x = grid, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1;
    });
  }
  // A kernel with latency stamps; 0: not known.
  void stamped_kernel(u32 correlation, u64 name, Nanos queued, Nanos submitted, Nanos start, Nanos finish,
                      Nanos handled, u32 stream = 7) {
    add<DeviceKernel>(collector_, "", handled, handled, [&](auto& r) {
      r.start = on_device(start), r.finish = on_device(finish), r.name = name, r.correlation = correlation;
      r.queued = queued ? on_device(queued) : 0, r.submitted = submitted ? on_device(submitted) : 0;
      r.context = 1, r.stream = stream, r.registers = 40;
      r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1;
    });
  }
  void overhead(u32 kind, i32 tid, Nanos begin, Nanos end, Nanos handled) {
    add<DeviceOverhead>(collector_, "", handled, handled, [&](auto& r) {
      r.start = on_device(begin), r.finish = on_device(end), r.kind = kind, r.thread = static_cast<u32>(tid);
    });
  }
  void copy(u32 correlation, u8 kind, u64 bytes, Nanos start, Nanos finish, Nanos handled, u32 stream = 7) {
    add<DeviceCopy>(collector_, "", handled, handled, [&](auto& r) {
      r.start = on_device(start), r.finish = on_device(finish), r.correlation = correlation, r.bytes = bytes;
      r.kind = kind, r.source_memory = 2, r.destination_memory = 3, r.asynchronous = 1, r.context = 1;
      r.stream = stream, r.source_device = r.destination_device = -1;
    });
  }
  void memset(u32 correlation, u64 bytes, Nanos start, Nanos finish, Nanos handled, u32 stream = 7) {
    add<DeviceMemset>(collector_, "", handled, handled, [&](auto& r) {
      r.start = on_device(start), r.finish = on_device(finish), r.correlation = correlation, r.bytes = bytes;
      r.context = 1, r.stream = stream;
    });
  }
  void order(Thread thread, OrderKind what, u64 event, u64 stream, Nanos at) {
    add<StreamOrder>(thread, "cuEventRecord", at, at + 1, [&](auto& r) {
      r.object = event, r.stream = stream, r.context = 0xc0, r.what = static_cast<u32>(what);
    });
  }

 private:
  i64 offset_;
  Thread collector_;
};

inline const Function& function(const ProcessTrace& process, const std::string& symbol) {
  for (const Function& known : process.functions) {
    if (known.symbol == symbol) return known;
  }
  ADD_FAILURE() << "no function " << symbol;
  static const Function kNothing;
  return kNothing;
}

}  // namespace gputrace::test
