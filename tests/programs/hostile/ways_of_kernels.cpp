// What devices did, and the launches that it is joined to.
#include "tests/programs/hostile/trace_maker.h"

namespace gputrace::hostile {
namespace {

// Launches with their kernels; `vary` changes what may be different.
Trace joined(const std::function<void(std::string&, u64)>& launch, const std::function<void(std::string&, u64)>& kernel,
             u64 most = kMostRecords) {
  Trace trace = with_device();
  const u64 piece = 16'000;
  for (u64 first = 0; first < most; first += piece) {
    std::string calls, device;
    for (u64 i = first; i < first + piece; ++i) {
      launch(calls, i);
      put_key(device, i);
      kernel(device, i);
    }
    put_clock(device, time_of(first + piece));
    if (!trace.chunk(1, calls, 1, kRoomForOthers) || !trace.chunk(2, device, 1, kRoomForOthers)) break;
  }
  return trace;
}

Trace same_kernel() {
  return joined([](std::string& b, u64 i) { put_launch(b, i); }, [](std::string& b, u64 i) { put_kernel(b, i, 1); });
}

Trace shapes() {
  return joined([](std::string& b, u64 i) { put_launch(b, i, kFunction, 0, static_cast<u32>(i + 1)); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1, 7, 0, static_cast<u32>(i + 1)); });
}

Trace streams() {
  return joined([](std::string& b, u64 i) { put_launch(b, i, kFunction, 0x1000 + i); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1, static_cast<u32>(i + 7)); });
}

Trace devices() {
  return joined([](std::string& b, u64 i) { put_launch(b, i); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1, 7, static_cast<u32>(i)); });
}

Trace handles() {
  return joined([](std::string& b, u64 i) { put_launch(b, i, kFunction + i); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1); });
}

Trace handles_in_one_bucket() {
  Trace trace;
  trace.fill_up(1, [](std::string& b, u64 i) { put_launch(b, i, (i % 500'000 + 1) * 541241ull); });
  return trace;
}

// Many streams have work; then the legacy stream, events and waits for the context, each of which means all of them.
Trace frontiers() {
  Trace trace = with_device();
  trace.fill_up(1, [](std::string& b, u64 i) {
    if (i < 200'000) return put_launch(b, i, kFunction, 0x1000 + i);
    if (i % 3 == 0) return put_launch(b, i, kFunction, 1);
    if (i % 3 == 1)
      return Trace::put<StreamOrder>(b, kOtherCall, time_of(i), time_of(i) + 1, [&](auto& r) {
        r.object = i, r.stream = 0x1000 + i % 200'000, r.context = kContext,
        r.what = static_cast<u32>(OrderKind::EventRecord);
      });
    Trace::put<Sync>(b, kOtherCall, time_of(i), time_of(i) + 1,
                     [&](auto& r) { r.context = kContext, r.what = static_cast<u32>(SyncKind::Context); });
  });
  return trace;
}

// One graph of many nodes, changed between replays: each time all nodes count.
Trace graph_changes() {
  Trace trace = with_device();
  std::string bytes;
  const auto node = [](std::string& b, u64 number, u32 kind, u64 at, u32 flags) {
    Trace::put<GraphNode>(b, kOtherCall, time_of(at), time_of(at) + 1, [&](auto& r) {
      r.exec = 0xe0, r.node = number, r.function = kFunction, r.kind = kind, r.flags = flags, r.bytes = 512;
      r.grid_x = r.grid_y = r.grid_z = r.block_x = r.block_y = r.block_z = 1, r.address = 0x10000 + number * 512;
    });
  };
  Trace::put<GraphInstantiate>(bytes, kOtherCall, 500, 501,
                               [](auto& r) { r.graph = 0xe1, r.exec = 0xe0, r.nodes = r.kernel_nodes = 100'000; });
  for (u64 i = 0; i < 100'000; ++i)
    node(bytes, i + 1, static_cast<u32>(i % 2 ? GraphNodeKind::Kernel : GraphNodeKind::MemAlloc), 6, 0);
  trace.chunk(1, bytes);
  trace.fill_up(1, [&](std::string& b, u64 i) {
    Trace::put<GraphLaunch>(b, kLaunchCall, time_of(i), time_of(i) + 50,
                            [](auto& r) { r.exec = 0xe0, r.context = kContext; });
    node(b, 1, static_cast<u32>(GraphNodeKind::Kernel), i, kNodeSet);
  });
  return trace;
}

// Long gaps of the device, each over many calls of many threads.
Trace gaps() {
  Trace trace = with_device();
  for (u64 piece = 0; piece < 3000; ++piece) {
    std::string calls, device;
    for (u64 i = piece * 8000; i < (piece + 1) * 8000; ++i) {
      if (i % 100) {
        Trace::put<Sync>(calls, kOtherCall, time_of(i), time_of(i) + 90,
                         [&](auto& r) { r.context = kContext, r.what = static_cast<u32>(SyncKind::Context); });
        continue;
      }
      put_launch(calls, i);
      put_key(device, i);
      put_kernel(device, i, 1, static_cast<u32>(7 + i / 100 % 1000));
    }
    if (!trace.chunk(1, calls, 1, kRoomForOthers)) break;
    if (piece % 16) continue;
    put_clock(device, time_of((piece + 1) * 8000));
    if (!trace.chunk(2, device, 1, kRoomForOthers)) break;
  }
  return trace;
}

// No reading of the clock comes: all device records wait.
Trace no_clock() {
  Trace trace = with_device();
  trace.fill_up(2, [](std::string& b, u64 i) { put_kernel(b, i, 1); });
  return trace;
}

Trace clock_readings() {
  Trace trace = with_device();
  trace.fill_up(2, [](std::string& b, u64 i) { put_clock(b, time_of(i)); });
  return trace;
}

// Copies whose addresses lie in many allocations.
Trace copies() {
  Trace trace = with_device();
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Copy>(b, kOtherCall, time_of(i), time_of(i) + 50, [&](auto& r) {
      r.destination = i * 512, r.source = i * 1024, r.bytes = i, r.stream = 0x1000 + i, r.context = kContext + i,
      r.kind = static_cast<u8>(i % 6);
    });
  });
  return trace;
}

}  // namespace

#define WAY(name) \
  { #name, name }
std::vector<Way> ways_of_kernels() {
  return {WAY(same_kernel),           WAY(shapes),    WAY(streams),       WAY(devices), WAY(handles),
          WAY(handles_in_one_bucket), WAY(frontiers), WAY(graph_changes), WAY(gaps),    WAY(no_clock),
          WAY(clock_readings),        WAY(copies)};
}
#undef WAY

}  // namespace gputrace::hostile
