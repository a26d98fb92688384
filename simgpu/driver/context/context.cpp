#include "simgpu/driver/context/context.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/module/module.h"
#include "simgpu/driver/observe/observe.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

// What a thread owns beyond its ThreadState.
struct ThreadOwned {
  std::vector<Stream*> default_streams;  // references held
};

pthread_key_t thread_end_key;
thread_local constinit ThreadOwned* thread_owned __attribute__((tls_model("initial-exec"))) = nullptr;

// Runs after the thread's C++ destructors; if a later one calls CUDA again, it runs again.
void end_thread(void*) {
  std::free(thread_state.below);
  thread_state.below = nullptr;
  thread_state.below_count = thread_state.below_capacity = 0;
  thread_state.per_thread_stream = nullptr;
  thread_state.per_thread_context = nullptr;
  if (thread_owned == nullptr) return;
  for (Stream* stream : thread_owned->default_streams) destroy_stream(*stream);
  for (Stream* stream : thread_owned->default_streams) release(stream);
  delete thread_owned;
  thread_owned = nullptr;
}

void watch_thread_end() {
  static const int kCreated = pthread_key_create(&thread_end_key, end_thread);
  if (kCreated == 0 && pthread_getspecific(thread_end_key) == nullptr)
    pthread_setspecific(thread_end_key, &thread_end_key);
}

void set_default_limits(Context& context) {
  context.limits[CU_LIMIT_STACK_SIZE] = 1024;
  context.limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7ull << 20;
  context.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8ull << 20;
  context.limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context.limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128;
  context.limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0;
}

}  // namespace

uint64_t next_object_id() {
  static constinit std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Context* current_context() { return thread_state.current; }
void set_current_context(Context* context) { thread_state.current = context; }

Context* make_context(Device& device, bool primary) {
  auto* context = create<Context>();
  if (context == nullptr) return nullptr;
  context->device = &device;
  context->primary = primary;
  context->id = next_object_id();
  return context;
}

namespace {
constinit std::atomic<uint32_t> activated{0};
}  // namespace

uint32_t contexts_activated() { return activated.load(); }

void activate_context(Context& context, unsigned flags) {
  activated.fetch_add(1);
  context.flags = flags;
  context.cache_config = CU_FUNC_CACHE_PREFER_NONE;
  context.shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  set_default_limits(context);
  context.active.store(true, std::memory_order_release);
  if (looked_at(look::resources)) show_context(ResourceNotice::Act::context_created, context);
}

void deactivate_context(Context& context) {
  context_wait_host(context);
  if (looked_at(look::resources)) show_context(ResourceNotice::Act::context_destroyed, context);
  context.active.store(false, std::memory_order_release);
  std::vector<Stream*> streams;
  std::vector<Module*> modules;
  {
    std::lock_guard lock(context.mutex);
    streams = context.streams;
    modules = context.modules;
    context.peers.clear();
  }
  for (Stream* stream : streams) destroy_stream(*stream);
  for (Module* module : modules) unload_module(*module);
  for (const Allocation& allocation : remove_allocations_of(&context)) give_back_memory(allocation);
}

bool push_context(Context* context) {
  ThreadState& state = thread_state;
  watch_thread_end();
  if (state.below_count == state.below_capacity) {
    const uint32_t capacity = state.below_capacity == 0 ? 8 : state.below_capacity * 2;
    auto** grown = static_cast<Context**>(std::realloc(state.below, capacity * sizeof(void*)));
    if (grown == nullptr) return false;
    state.below = grown;
    state.below_capacity = capacity;
  }
  state.below[state.below_count++] = state.current;
  state.current = context;
  return true;
}

void pop_context() {
  ThreadState& state = thread_state;
  state.current = state.below_count > 0 ? state.below[--state.below_count] : nullptr;
}

void forget_context(Context* context) {
  ThreadState& state = thread_state;
  state.below_count =
      static_cast<uint32_t>(std::remove(state.below, state.below + state.below_count, context) - state.below);
  if (state.current == context) pop_context();
}

Stream* create_stream(Context& context, Stream::Kind kind, unsigned flags, int priority) {
  auto* stream = create<Stream>();
  if (stream == nullptr) return nullptr;
  stream->kind = kind;
  stream->context = &context;
  stream->id = next_object_id();
  stream->flags = flags;
  stream->priority = priority;
  std::lock_guard lock(context.mutex);
  context.streams.push_back(stream);
  if (stream->waits_for_legacy()) context.blocking_streams.fetch_add(1);
  return stream;
}

void destroy_stream(Stream& stream) {
  Context& context = *stream.context;
  {
    std::lock_guard lock(context.mutex);
    const auto found = std::find(context.streams.begin(), context.streams.end(), &stream);
    if (found == context.streams.end()) return;
    context.streams.erase(found);
    if (stream.waits_for_legacy()) context.blocking_streams.fetch_sub(1);
    if (stream.kind == Stream::Kind::legacy) context.legacy.store(nullptr);
    // What the stream was given still holds back the context's end and the legacy stream.
    context.orphans_end = std::max(context.orphans_end, stream.end.load());
  }
  capture_stream_destroyed(stream);
  retire(&stream);
}

Stream* legacy_stream(Context& context) {
  if (Stream* known = context.legacy.load(std::memory_order_acquire)) return known;
  static constinit std::mutex mutex;
  std::lock_guard lock(mutex);
  if (Stream* known = context.legacy.load(std::memory_order_acquire)) return known;
  Stream* stream = create_stream(context, Stream::Kind::legacy, 0, 0);
  context.legacy.store(stream, std::memory_order_release);
  return stream;
}

Stream* per_thread_stream(Context& context) {
  ThreadState& state = thread_state;
  if (state.per_thread_context == &context && state.per_thread_stream->tag.load() == Stream::kTag) {
    return state.per_thread_stream;
  }
  watch_thread_end();
  if (thread_owned == nullptr) thread_owned = new ThreadOwned;
  Stream* stream = nullptr;
  for (Stream* own : thread_owned->default_streams) {
    if (own->context == &context && own->tag.load() == Stream::kTag) stream = own;
  }
  if (stream == nullptr) {
    stream = create_stream(context, Stream::Kind::per_thread, 0, 0);
    if (stream == nullptr) return nullptr;
    retain(stream);
    thread_owned->default_streams.push_back(stream);
  }
  state.per_thread_context = &context;
  state.per_thread_stream = stream;
  return stream;
}

CUstream public_handle(const Stream* stream) {
  switch (stream->kind) {
    case Stream::Kind::legacy:
      return CU_STREAM_LEGACY;
    case Stream::Kind::per_thread:
      return CU_STREAM_PER_THREAD;
    case Stream::Kind::created:
      break;
  }
  return handle_of(stream);
}

Stream* Call::stream(CUstream handle) {
  const bool legacy = handle == CU_STREAM_LEGACY || (handle == nullptr && default_stream_ == DefaultStream::legacy);
  const bool per_thread =
      handle == CU_STREAM_PER_THREAD || (handle == nullptr && default_stream_ == DefaultStream::per_thread);
  if (!legacy && !per_thread) return live<Stream>(handle);
  Context* own = context();
  if (own == nullptr) return nullptr;
  return legacy ? legacy_stream(*own) : per_thread_stream(*own);
}

CUresult Call::stream_error(CUstream handle) {
  if (handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
    return CUDA_ERROR_INVALID_HANDLE;
  return context() == nullptr ? context_error() : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace simgpu
