// Chunks: many, large, broken; threads, anchors, counters.
#include "tests/programs/hostile/trace_maker.h"

namespace gputrace::hostile {
namespace {

// As many threads as there is room for, each with one chunk that lasts from the first moment to the last.
Trace threads() {
  Trace trace;
  std::string bytes;
  Trace::put<Call>(bytes, kOtherCall, kBegin, kBegin + 1, [](auto&) {});
  Trace::put<Call>(bytes, kOtherCall, Nanos{1} << 40, (Nanos{1} << 40) + 1, [](auto&) {});
  for (u32 i = 2; i < 1'000'000; ++i) {
    if (!trace.chunk(1, bytes, i, kRoomForOthers)) break;
  }
  return trace;
}

Trace thread_entries() {
  Trace trace;
  for (u32 first = 0;; first += 80'000) {
    std::vector<ThreadEntry> entries(80'000);
    for (u32 i = 0; i < entries.size(); ++i) entries[i] = {first + i + 10, 1, static_cast<i32>(first + i), 0, 1, 0, ""};
    ChunkHeader header{};
    header.kind = ChunkKind::Thread;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}

// Definitions name threads that are looked for among many.
Trace callers() {
  Trace trace;
  std::vector<ThreadEntry> entries(60'000);
  for (u32 i = 0; i < entries.size(); ++i) entries[i] = {i + 10, 1, static_cast<i32>(i + 1000), 0, 1, 0, ""};
  trace.file().append(ChunkKind::Thread, entries.data(), entries.size() * sizeof entries[0]);
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<FunctionGet>(b, kOtherCall, time_of(i), time_of(i) + 1,
                            [&](auto& r) { r.function = kFunction, r.thread = 999; });
  });
  return trace;
}

// A few threads, each with one chunk as large as chunks may be.
Trace large_chunks() {
  Trace trace;
  std::string bytes;
  for (u64 i = 0; bytes.size() + 40 < kMaxChunkRaw; ++i)
    Trace::put<Call>(bytes, kOtherCall, time_of(i), time_of(i) + 50, [](auto&) {});
  for (u32 i = 2; i < 400; ++i) {
    if (!trace.chunk(1, bytes, i, kRoomForOthers)) break;
  }
  return trace;
}

// Chunks that do not decode to what they say.
Trace broken_chunks() {
  Trace trace;
  for (u32 i = 0; i < 1'000'000; ++i) {
    ChunkHeader header{};
    header.kind = i % 2 ? ChunkKind::Records : ChunkKind::InFlight;
    header.slot = 1, header.incarnation = 1, header.first_record = i * 2, header.record_count = 1;
    if (!trace.file().append(header, "12345678901234567890123456789012", 32, kRoomForOthers)) break;
  }
  return trace;
}

Trace calls_in_flight() {
  Trace trace;
  for (u32 first = 0;; first += 80'000) {
    std::vector<InFlightEntry> entries(80'000);
    for (u32 i = 0; i < entries.size(); ++i) entries[i] = {1, 1, 101, kLaunchCall, first + i, i, 0, 0};
    ChunkHeader header{};
    header.kind = ChunkKind::InFlight;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}

Trace anchors() {
  Trace trace;
  for (u32 first = 0;; first += 200'000) {
    std::vector<Anchor> entries(200'000);
    for (u32 i = 0; i < entries.size(); ++i) {
      const u64 at = 1'000'000'002ull + first + i;
      entries[i] = {at, static_cast<Nanos>(at), 1'700'000'000'000'000'000 + static_cast<Nanos>(at), 2};
    }
    ChunkHeader header{};
    header.kind = ChunkKind::Anchors;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}

Trace health() {
  Trace trace;
  for (u32 first = 0;; first += 80'000) {
    std::vector<HealthEntry> entries(80'000);
    for (u32 i = 0; i < entries.size(); ++i) {
      entries[i].slot = first + i + 10, entries[i].incarnation = 1, entries[i].tid = static_cast<i32>(first + i);
      entries[i].seen = entries[i].dropped[0] = 1;
    }
    ChunkHeader header{};
    header.kind = ChunkKind::Health;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}

}  // namespace

#define WAY(name) \
  { #name, name }
std::vector<Way> ways_of_chunks() {
  return {WAY(threads),       WAY(thread_entries),  WAY(callers), WAY(large_chunks),
          WAY(broken_chunks), WAY(calls_in_flight), WAY(anchors), WAY(health)};
}
#undef WAY

}  // namespace gputrace::hostile
