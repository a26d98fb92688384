// Texts, names that are written out, and what is said of a trace in words: schema and information.
#include "tests/programs/hostile/trace_maker.h"

namespace gputrace::hostile {
namespace {

// Every kernel has a name of its own, and no call.
Trace kernel_names() {
  Trace trace = with_device();
  const u64 texts = trace.fill_up(
      0, [](std::string& bytes, u64 i) { Trace::put_text(bytes, 10 + i, "k" + std::to_string(i)); }, 100'000);
  trace.fill_up(2, [&](std::string& bytes, u64 i) { put_kernel(bytes, i, 10 + i % (texts + 1)); });
  return trace;
}

// One name of a megabyte, and as many functions with it as there is room for.
Trace long_name() {
  Trace trace;
  std::string bytes;
  Trace::put_long_text(bytes, 1, "_Z" + std::string(kMaxChunkRaw / 17, 'a'));
  trace.chunk(0, bytes);
  const u64 functions = trace.fill_up(
      0, [](std::string& b, u64 i) { put_function(b, kFunction + i, 1); }, 200'000);
  trace.fill_up(1, [&](std::string& b, u64 i) { put_launch(b, i, kFunction + i % (functions + 1)); });
  return trace;
}

// Names that grow when they are written out: each substitution stands for two of the one before.
Trace growing_names() {
  Trace trace;
  std::string bytes;
  const auto letter = [](u32 n) {
    constexpr char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string word;
    for (u32 value = n;; value = value / 36 - 1) {
      word.insert(word.begin(), digits[value % 36]);
      if (value < 36) break;
    }
    return word;
  };
  for (u64 i = 0; i < 3000; ++i) {
    std::string name = "_Z" + std::to_string(10 + i % 90) + std::string(10 + i % 90, 'x') + "1aIiiE";
    for (u32 level = 0; level < 40; ++level) {
      const std::string before = "S" + letter(level) + "_";
      name.append("S_I").append(before).append(before).append("E");
    }
    Trace::put_text(bytes, i + 1, name);
    put_function(bytes, kFunction + i, i + 1);
  }
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) { put_launch(b, i, kFunction + i % 3000); });
  return trace;
}

Trace texts() {
  Trace trace;
  trace.fill_up(0, [](std::string& b, u64 i) { Trace::put_text(b, i + 1, "t"); });
  return trace;
}

// Ids that lie in one bucket of a table that takes them as they are.
Trace texts_in_one_bucket() {
  Trace trace;
  trace.fill_up(0, [](std::string& b, u64 i) { Trace::put_text(b, (i + 1) * 1056323ull, "t"); });
  return trace;
}

Trace long_texts() {
  Trace trace;
  for (u64 id = 1; id < 2000; ++id) {
    std::string bytes;
    Trace::put_long_text(bytes, id, std::string(1'000'000, 't'));
    if (!trace.chunk(0, bytes, 1, kRoomForOthers)) break;
  }
  return trace;
}

Trace with_long_text() {
  Trace trace;
  std::string bytes;
  Trace::put_long_text(bytes, 1, std::string(1'000'000, 'n'));
  trace.chunk(0, bytes);
  return trace;
}

// One long text that every record names.
Trace notes() {
  Trace trace = with_long_text();
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<Note>(b, 0, time_of(i), time_of(i), [](auto& r) { r.text = 1, r.what = 1; });
  });
  return trace;
}

Trace nvtx_messages() {
  Trace trace = with_long_text();
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Nvtx>(b, 0, time_of(i), time_of(i), [&](auto& r) { r.message = 1, r.domain = 1, r.what = 1 + i % 2; });
  });
  return trace;
}

// Frames that all have it as their function and file.
template <typename Frame>
Trace frames_of(u32 first, void (*put)(Frame&)) {
  Trace trace = with_long_text();
  trace.fill_up(0, [&](std::string& b, u64 i) {
    Trace::put<Frame>(b, 0, time_of(i), time_of(i), [&](auto& r) { put(r), r.id = first + static_cast<u32>(i); });
  });
  return trace;
}

void put_long(StackFrame& frame) { frame.function = frame.file = 1; }
Trace long_frames() { return frames_of<StackFrame>(1, put_long); }
Trace long_sampled_frames() { return frames_of<StackFrame>(kFirstSampledFrame, put_long); }
Trace long_native_frames() {
  return frames_of<NativeFrame>(1, [](NativeFrame& frame) { frame.object = 1; });
}

// A process that made a process, that made a process, ...; of each, what its first thread used.
Trace process_chain() {
  Trace trace = with_device();
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<ThreadUse>(b, 0, time_of(i), time_of(i), [&](auto& r) {
      r.process = r.tid = static_cast<i32>(5000 + i), r.parent = i == 0 ? 4242 : static_cast<i32>(4999 + i);
      r.cpu = i, r.age = 1000;
    });
  });
  return trace;
}

// Stacks as deep as there are frames, in the loop of a loader's worker, and samples that found each.
Trace deep_samples() {
  Trace trace = with_device();
  std::string bytes;
  Trace::put_text(bytes, 1, "torch/utils/data/_utils/worker.py");
  Trace::put_text(bytes, 2, "_worker_loop");
  trace.chunk(0, bytes);
  std::string call;
  put_launch(call, 0, kFunction);
  trace.chunk(1, call);
  constexpr u64 kFrames = 60'000;
  trace.fill_up(
      0,
      [](std::string& b, u64 i) {
        Trace::put<StackFrame>(b, 0, time_of(i), time_of(i), [&](auto& r) {
          r.id = kFirstSampledFrame + static_cast<u32>(i), r.parent = i == 0 ? 0 : r.id - 1;
          r.file = 1, r.function = i == 0 ? 2 : 1, r.line = static_cast<u32>(i);
        });
      },
      kFrames);
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<Sample>(b, 0, time_of(i), time_of(i), [&](auto& r) {
      r.frame = kFirstSampledFrame + static_cast<u32>(i * 7919 % kFrames), r.process = 5000, r.slot = r.incarnation = 1;
    });
  });
  return trace;
}

// Files of a process each, all with one long path.
Trace file_uses() {
  Trace trace = with_long_text();
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<FileUse>(b, 0, time_of(i), time_of(i), [&](auto& r) {
      r.path = 1, r.process = static_cast<i32>(i), r.what = static_cast<u32>(i % 14 + 1);
      r.count = r.bytes = r.total = r.longest = i;
    });
  });
  return trace;
}

// Waits of a thread each, at lines as deep as they may be.
Trace deep_waits() {
  constexpr u32 kFrames = 100'000;
  Trace trace = with_long_text();
  trace.fill_up(
      0,
      [](std::string& b, u64 i) {
        Trace::put<StackFrame>(b, 0, time_of(i), time_of(i), [&](auto& r) {
          r.id = static_cast<u32>(i) + 1, r.parent = r.id % 250 == 0 ? 0 : r.id - 1;
          r.file = r.function = 1, r.line = r.id;
        });
      },
      kFrames);
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<WaitUse>(b, 0, time_of(i), time_of(i), [&](auto& r) {
      r.tid = static_cast<i32>(i), r.frame = static_cast<u32>(i * 7919 % kFrames),
      r.what = static_cast<u32>(i % 10 + 1);
      r.count = r.total = r.longest = i;
    });
  });
  return trace;
}

Trace schema_of(const std::function<void(std::string&, u64)>& line) {
  std::string text;
  for (u64 i = 0; text.size() + 100 < kMaxChunkRaw; ++i) line(text, i);
  Trace trace;
  trace.file().append(ChunkKind::Schema, text);
  for (int again = 0; again < 20; ++again) trace.file().append(ChunkKind::Schema, text);
  return trace;
}

Trace schema_values() {
  return schema_of([](std::string& text, u64 i) {
    if (i % 1000 == 0) text += "enum E" + std::to_string(i / 1000) + "\n";
    text += "value E" + std::to_string(i / 1000) + " " + std::to_string(i) + " w\n";
  });
}

Trace schema_fields() {
  return schema_of([](std::string& text, u64 i) {
    const std::string number = std::to_string(1000 + i / 4000);
    if (i % 4000 == 0) text += "record " + number + " R" + number + " 65528 Call \"d\"\n";
    text += "field R" + number + " f u8 24 none \"d\"\n";
  });
}

Trace schema_calls() {
  Trace trace = schema_of([](std::string& text, u64 i) {
    text += "call " + std::to_string(5 + i % 65'000) + " " + std::string(200, 'c') + " driver v\n";
  });
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Call>(b, static_cast<u16>(i), time_of(i), time_of(i) + 50,
                     [&](auto& r) { r.header.result = static_cast<u16>(i / 65536); });
  });
  return trace;
}

Trace schema_bad_lines() {
  return schema_of([](std::string& text, u64) { text += "\n?\n"; });
}

Trace info_of(const std::function<std::string(u64)>& line) {
  Trace trace;
  for (u64 i = 0;;) {
    std::string text;
    while (text.size() + 300 < kMaxChunkRaw / 2) text += line(i++) + "\n";
    ChunkHeader header{};
    header.kind = ChunkKind::Info;
    if (!trace.file().append(header, text.data(), text.size(), kRoomForOthers)) break;
  }
  return trace;
}

Trace info_not_collected() {
  return info_of([](u64 i) { return "not_collected\ta" + std::to_string(i) + ": why"; });
}

Trace info_options() {
  return info_of([](u64 i) { return "option.o" + std::to_string(i) + "\tv"; });
}

Trace info_warnings() {
  return info_of([](u64 i) { return "option_warning\tw" + std::to_string(i); });
}

Trace info_argv() {
  Trace trace;
  trace.file().append(ChunkKind::Info, "argv\t" + std::string(kMaxChunkRaw - 100, '\'') + "\n");
  trace.file().append(ChunkKind::Info, "argv\t" + std::string(kMaxChunkRaw - 100, '\x1f') + "\n");
  return trace;
}

}  // namespace

#define WAY(name) \
  { #name, name }
std::vector<Way> ways_of_texts() {
  return {WAY(kernel_names),       WAY(long_name),     WAY(growing_names), WAY(texts),        WAY(texts_in_one_bucket),
          WAY(long_texts),         WAY(notes),         WAY(nvtx_messages), WAY(long_frames),  WAY(long_sampled_frames),
          WAY(long_native_frames), WAY(schema_values), WAY(schema_fields), WAY(schema_calls), WAY(schema_bad_lines),
          WAY(info_not_collected), WAY(info_options),  WAY(info_warnings), WAY(info_argv),    WAY(process_chain),
          WAY(deep_samples),       WAY(file_uses),     WAY(deep_waits)};
}
#undef WAY

}  // namespace gputrace::hostile
