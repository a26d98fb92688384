// Calls of the host, and the definitions that they name: code, memory, stacks, operations, libraries.
#include "tests/programs/hostile/trace_maker.h"

namespace gputrace::hostile {
namespace {

Trace plain_calls() {
  Trace trace;
  trace.fill_up(1, [](std::string& bytes, u64 i) {
    Trace::put<Call>(bytes, kOtherCall, time_of(i), time_of(i) + 50, [](auto&) {});
  });
  return trace;
}

// Modules come and go under one handle, functions of others stay: each time all are looked at.
Trace modules_again() {
  Trace trace;
  std::string bytes;
  Trace::put_text(bytes, 1, "kernel");
  for (u64 i = 0; i < 60'000; ++i) put_function(bytes, kFunction + i, 1);
  trace.chunk(0, bytes);
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<ModuleLoad>(b, kOtherCall, time_of(i), time_of(i) + 1,
                           [&](auto& r) { r.module = 0xa0, r.thread = 101; });
  });
  return trace;
}

Trace images_of_one_module() {
  Trace trace;
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<CodeImage>(b, 0, time_of(i), time_of(i), [&](auto& r) { r.module = 0xa0, r.image = i + 1; });
  });
  return trace;
}

// Memory: as many live allocations, pools, devices as there is room for.
Trace allocations() {
  Trace trace;
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Alloc>(b, kOtherCall, time_of(i), time_of(i) + 50,
                      [&](auto& r) { r.address = 0x10000 + i * 512, r.bytes = 512, r.context = kContext, r.kind = 1; });
  });
  return trace;
}

Trace pools() {
  Trace trace;
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Alloc>(b, kOtherCall, time_of(i), time_of(i) + 50, [&](auto& r) {
      r.address = 0x10000 + i * 512, r.bytes = 512, r.context = kContext + i, r.kind = 1 + i % 8;
      r.pool = i + 1, r.device = static_cast<i32>(i);
    });
  });
  return trace;
}

// Contexts that go while much is allocated.
Trace contexts_that_go() {
  Trace trace;
  std::string bytes;
  for (u64 i = 0; i < 100'000; ++i)
    Trace::put<Alloc>(bytes, kOtherCall, time_of(i), time_of(i) + 50,
                      [&](auto& r) { r.address = 0x10000 + i * 512, r.bytes = 512, r.context = kContext, r.kind = 1; });
  trace.chunk(1, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<ObjectCall>(b, kOtherCall, time_of(100'000 + i), time_of(100'000 + i) + 50, [&](auto& r) {
      r.object = 0x9000 + i, r.kind = static_cast<u32>(ObjectKind::Context),
      r.what = static_cast<u32>(ObjectAct::Destroyed);
    });
  });
  return trace;
}

// One stack of 200,000 frames of that file, and launches from each of them.
Trace deep_stacks(const std::string& file) {
  Trace trace;
  std::string bytes = bytes_of_texts(1, 1000);
  Trace::put_text(bytes, 2, file);
  for (u32 i = 1; i < 200'000; ++i)
    Trace::put<StackFrame>(bytes, 0, 5, 5, [&](auto& r) {
      r.function = 1, r.file = 2, r.id = i, r.parent = i - 1, r.line = i, r.language = 1;
    });
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Stack>(b, 0, time_of(i), time_of(i), [&](auto& r) {
      r.frame = static_cast<u32>(i % 200'000), r.frames = r.frame, r.operation = static_cast<u32>(i % 200'000);
    });
    put_launch(b, i);
  });
  return trace;
}

Trace stacks() { return deep_stacks(std::string(1000, 't')); }

// None of the program's own: which line stands for a stack is looked for in all of it.
Trace library_stacks() { return deep_stacks("/lib/site-packages/" + std::string(1000, 't')); }

Trace operations() {
  Trace trace;
  std::string bytes = bytes_of_texts(2, 1000);
  for (u32 i = 1; i < 200'000; ++i)
    Trace::put<StackFrame>(bytes, 0, 5, 5, [&](auto& r) {
      r.function = 1, r.file = 2, r.id = i, r.parent = i - 1, r.line = i, r.language = 2;
    });
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    put_launch(b, i);
    Trace::put<Operation>(b, 0, time_of(i), time_of(i) + 60,
                          [&](auto& r) { r.sequence = i, r.frame = static_cast<u32>(i % 200'000); });
  });
  return trace;
}

// Every call of a library is one of its own, and launches kernels of its own.
Trace library_rows() {
  Trace trace = with_device();
  trace.fill_up(1, [](std::string& b, u64 i) {
    put_launch(b, i, kFunction + i % 1000, 0, static_cast<u32>(i % 77));
    Trace::put<Matmul>(b, kLibraryCall, time_of(i) - 5, time_of(i) + 55,
                       [&](auto& r) { r.m = i, r.n = i, r.k = i, r.batch = 1, r.handle = i; });
  });
  return trace;
}

Trace communicators() {
  Trace trace = with_device();
  std::string bytes;
  for (u64 i = 0; i < 100'000; ++i)
    Trace::put<Communicator>(bytes, 0, 3, 3, [&](auto& r) {
      r.communicator = i + 1, r.id_hash = i, r.ranks = 1 << 30, r.rank = static_cast<i32>(i);
    });
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    put_launch(b, i);
    Trace::put<Collective>(b, kLibraryCall, time_of(i) - 5, time_of(i) + 55,
                           [&](auto& r) { r.communicator = i % 100'000 + 1, r.count = i, r.what = 1 + i % 5; });
  });
  return trace;
}

}  // namespace

#define WAY(name) \
  { #name, name }
std::vector<Way> ways_of_calls() {
  return {WAY(plain_calls),      WAY(modules_again), WAY(images_of_one_module), WAY(allocations), WAY(pools),
          WAY(contexts_that_go), WAY(stacks),        WAY(library_stacks),       WAY(operations),  WAY(library_rows),
          WAY(communicators)};
}
#undef WAY

}  // namespace gputrace::hostile
