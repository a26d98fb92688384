// Kernels as the model has them: what a launch must satisfy, how long it takes, what the truth file says.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/launch/occupancy.h"
#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/knobs.h"

namespace simgpu {

namespace {

// The model, in README.md: what starting costs, and what one wave of blocks takes.
constexpr Nanos kKernelBase = 2'000;
constexpr Nanos kWaveBase = 1'000;
constexpr Nanos kWavePer1024Threads = 3'000;

bool dimensions_fit(const Dim3& dim, const uint32_t (&highest)[3]) {
  return dim.x > 0 && dim.y > 0 && dim.z > 0 && dim.x <= highest[0] && dim.y <= highest[1] && dim.z <= highest[2];
}

CUresult check_cluster(const KernelLaunch& launch) {
  const Dim3& cluster = launch.cluster;
  const uint64_t blocks = cluster.count();
  if (blocks <= 1) return CUDA_SUCCESS;
  if (!has_clusters()) return CUDA_ERROR_NOT_SUPPORTED;
  const bool beyond = launch.function->attributes[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED].load() != 0;
  if (blocks > (beyond ? limits::kMaxCluster : limits::kMaxClusterPortable)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const bool divides =
      launch.grid.x % cluster.x == 0 && launch.grid.y % cluster.y == 0 && launch.grid.z % cluster.z == 0;
  return divides ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

Nanos model_duration(const KernelLaunch& launch) {
  const auto threads = static_cast<uint32_t>(launch.block.count());
  const uint64_t resident =
      std::max(1u, blocks_per_multiprocessor_for(*launch.function, threads, launch.dynamic_shared));
  const uint64_t at_once = resident * static_cast<uint64_t>(knobs().sms);
  const uint64_t waves = (launch.grid.count() + at_once - 1) / at_once;
  return kKernelBase + waves * (kWaveBase + kWavePer1024Threads * threads / 1024);
}

Nanos rule_for(const std::string& symbol) {
  for (const KernelTimeRule& rule : knobs().kernel_time) {
    if (std::regex_search(symbol, rule.symbol)) return std::min(rule.duration, Function::kModelDuration - 1);
  }
  return Function::kModelDuration;
}

std::string triple(const Dim3& dim) {
  char text[64];
  std::snprintf(text, sizeof text, "[%u,%u,%u]", dim.x, dim.y, dim.z);
  return text;
}

void describe(TruthFields& fields, const KernelLaunch& launch, const Stream& stream) {
  const Function& function = *launch.function;
  const auto attribute = [&](int which) { return function.attributes[static_cast<size_t>(which)].load(); };
  fields.add("symbol", function.code->symbol)
      .add("device", function.context->device->ordinal)
      .add("context", function.context->id)
      .add("stream", stream.id)
      .add("stream_handle", static_cast<const void*>(public_handle(&stream)))
      .raw("grid", triple(launch.grid))
      .raw("block", triple(launch.block))
      .raw("cluster", triple(launch.cluster))
      .add("dynamic_shared_bytes", launch.dynamic_shared)
      .add("static_shared_bytes", attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  if (function.code->registers) {
    fields.add("local_bytes", attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES))
        .add("registers", attribute(CU_FUNC_ATTRIBUTE_NUM_REGS));
  } else {
    fields.null("local_bytes").null("registers");
  }
}

}  // namespace

void add_graph(TruthFields& fields, const Origin& origin) {
  if (!origin.in_graph) {
    fields.null("graph");
    return;
  }
  char text[128];
  std::snprintf(text, sizeof text, "{\"exec\":%llu,\"node\":%llu,\"launch\":%llu}",
                static_cast<unsigned long long>(origin.graph.exec), static_cast<unsigned long long>(origin.graph.node),
                static_cast<unsigned long long>(origin.graph.launch));
  fields.raw("graph", text);
}

CUresult check_launch(const KernelLaunch& launch) {
  const Function& function = *launch.function;
  const auto attribute = [&](int which) {
    return static_cast<uint32_t>(function.attributes[static_cast<size_t>(which)].load(std::memory_order_relaxed));
  };
  if (!dimensions_fit(launch.grid, limits::kMaxGrid) || !dimensions_fit(launch.block, limits::kMaxBlock)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t threads = launch.block.count();
  if (threads > limits::kMaxThreadsPerBlock) return CUDA_ERROR_INVALID_VALUE;
  if (threads > attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const uint32_t* required = function.code->required_block;
  if (required[0] != 0 &&
      (launch.block.x != required[0] || launch.block.y != required[1] || launch.block.z != required[2])) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (launch.dynamic_shared > attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES))
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = check_cluster(launch); result != CUDA_SUCCESS) return result;
  if (launch.cooperative) {
    const uint64_t resident =
        blocks_per_multiprocessor_for(*launch.function, static_cast<uint32_t>(threads), launch.dynamic_shared);
    if (launch.grid.count() > resident * static_cast<uint64_t>(knobs().sms))
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

Nanos kernel_duration(const KernelLaunch& launch) {
  std::atomic<Nanos>& known = launch.function->duration;
  Nanos duration = known.load(std::memory_order_relaxed);
  if (duration == Function::kUnknownDuration) {
    duration = rule_for(launch.function->code->symbol);
    known.store(duration, std::memory_order_relaxed);
  }
  return duration == Function::kModelDuration ? std::max(model_duration(launch), launch.least) : duration;
}

Span perform(const KernelLaunch& launch, const Origin& origin, Nanos ready) {
  const Span span{ready, ready + kernel_duration(launch)};
  show_kernel(launch, origin, span);
  return span;
}

void show_kernel(const KernelLaunch& launch, const Origin& origin, const Span& span) {
  if (looked_at(look::device)) show(launch, origin, span);
  if (!origin.stamp) return;
  TruthFields fields("kernel");
  describe(fields, launch, *origin.stream);
  fields.add("correlation", origin.correlation).add("start_ns", span.start).add("end_ns", span.end);
  add_graph(fields, origin);
  origin.stamp->add(fields);
}

bool KernelExecution::ended(Nanos ready) {
  if (!begun_) {
    begun_ = true;
    const Nanos ruled = rule_for(launch_.function->code->symbol);
    span_.start = ready;
    const KernelStart start{ready, ruled == Function::kModelDuration ? 0 : ruled,
                            static_cast<uint64_t>(knobs().copy_bandwidth)};
    state_ = launch_.work->begin(launch_.work->plan, &start);
  }
  return launch_.work->poll(state_, &span_.end);
}

std::shared_ptr<const KernelWork> take_next_kernel() {
  const KernelWork* next = std::exchange(thread_state.next_kernel, nullptr);
  const auto forget = [](const KernelWork* work) {
    work->release(work->plan);
    delete work;
  };
  return next != nullptr ? std::shared_ptr<const KernelWork>(next, forget) : nullptr;
}

void truth_node(CallStamp* stamp, const KernelLaunch& launch, const Stream& stream, const void* node) {
  if (stamp == nullptr) return;
  TruthFields fields("node");
  describe(fields, launch, stream);
  stamp->add(fields.add("node", node));
}

}  // namespace simgpu

extern "C" int simgpu_next_kernel(const simgpu::KernelWork* work) {
  using simgpu::thread_state;
  simgpu::take_next_kernel();  // one that was never launched
  if (work != nullptr) thread_state.next_kernel = new simgpu::KernelWork(*work);
  return 0;
}

extern "C" int simgpu_next_kernel_takes(uint64_t nanoseconds) {
  simgpu::thread_state.next_kernel_least = static_cast<simgpu::Nanos>(nanoseconds);
  return 0;
}
