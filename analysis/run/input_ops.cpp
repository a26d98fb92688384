#include "analysis/run/input_ops.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/facts/sample_facts.h"
#include "analysis/lines/loaders.h"
#include "analysis/lines/sites.h"
#include "analysis/run/host_use.h"
#include "analysis/run/needs.h"

namespace gputrace {
namespace {

// The sidecar reads no deeper stack: python_frames.h.
constexpr u32 kDeepest = 256;

// What the frames of a process are, each looked at once.
using Place = LoaderFrames::Place;
std::vector<Place> places_of(const SourceFrames& frames) {
  std::vector<Place> places(frames.size(), Place::Other);
  const std::vector<bool> loads = frames_that_load(frames);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const SourceFrame& frame = frames[i];
    if (is_worker_loop(frame) || !loader_that_runs(frame).empty())
      places[i] = Place::WorkerLoop;
    else if (loads[i])
      places[i] = Place::OwnLoader;  // a thread loads by itself
    else if (frame.file.ends_with("multiprocessing/queues.py") || frame.file.ends_with("/queue.py"))
      places[i] = Place::Queue;
  }
  return places;
}

// The frames within a loader, innermost first.
struct Loading {
  std::vector<u32> frames;
  bool found = false;
  bool waits = false;  // it is a worker that waits to be asked
};

void find_place(const SourceFrames& frames, const std::vector<Place>& places, u32 innermost, Place loads,
                Loading& loading) {
  loading.frames.clear();
  loading.found = loading.waits = false;
  u32 depth = 0;
  for (u32 frame = innermost; frame != 0 && frame < frames.size() && depth < kDeepest;
       frame = frames[frame].parent, ++depth) {
    if (places[frame] == loads) {
      // Asking its queue is what the worker's loop does first of all.
      loading.waits =
          loads == Place::WorkerLoop && (loading.frames.empty() || places[loading.frames.back()] == Place::Queue);
      loading.found = true;
      return;
    }
    loading.frames.push_back(frame);
  }
}

using Of = LoaderFrames::Of;
void find_loader(const SourceFrames& frames, const std::vector<Place>& places, u32 innermost, Of of, Loading& loading) {
  loading.found = false;
  if (of != Of::OwnThread) find_place(frames, places, innermost, Place::WorkerLoop, loading);
  if (of != Of::Workers && !loading.found) find_place(frames, places, innermost, Place::OwnLoader, loading);
}

// What samples found a frame innermost, in workers or in the traced process.
struct Found {
  u64 samples = 0, ns = 0;
};
using FoundFrames = std::map<std::pair<Of, u32>, Found>;

FoundFrames found_frames(const ProcessTrace& process) {
  FoundFrames found;
  const LoaderStacks stacks(process.samples.frames);
  for (const SampledThread& series : process.samples.threads) {
    Nanos before = 0;
    for (const SamplePoint& point : series.points) {
      const bool is_loop = series.calls_cuda() && !stacks.makes(point.frame);
      const Of of = series.process != 0 ? Of::Workers : is_loop ? Of::OwnThread : Of::OtherThread;
      Found& at = found[{of, point.frame}];
      ++at.samples;
      if (before) at.ns += static_cast<u64>(std::min(point.at - before, kLongestLook));
      before = point.at;
    }
  }
  return found;
}

struct CountedOp {
  InputOp sum;
  u64 stack = 0;  // that was added last: a function that calls itself counts once
};
using OpsByName = std::map<std::pair<bool, std::string>, CountedOp>;

void add_process(const ProcessTrace& process, const FileNames& names, u64& stacks, OpsByName& ops, InputOps& result) {
  const SourceFrames& frames = process.samples.frames;
  const std::vector<Place> places = places_of(frames);
  std::vector<CountedOp*> op_of[2];  // by frame, of the loop and of workers
  for (auto& each : op_of) each.resize(frames.size());
  Loading loading;
  for (const auto& [where, sum] : found_frames(process)) {
    const auto [of, innermost] = where;
    const bool ahead = of != Of::OwnThread;
    find_loader(frames, places, innermost, of, loading);
    if (loading.waits) result.waiting += sum.samples;
    if (!loading.found || loading.frames.empty() || loading.waits) continue;
    result.samples += sum.samples, result.all_ns += sum.ns;
    ++stacks;
    for (const u32 frame : loading.frames) {
      CountedOp*& op = op_of[ahead][frame];
      if (!op) {
        const std::string name = names.of(frames[frame].file) + " " + frames[frame].function;
        op = &ops[{ahead, name}];
        op->sum.op = name, op->sum.ahead = ahead;
      }
      if (frame == innermost) op->sum.self_samples += sum.samples, op->sum.self_ns += sum.ns;
      if (std::exchange(op->stack, stacks) == stacks) continue;
      op->sum.samples += sum.samples, op->sum.total_ns += sum.ns;
    }
  }
}

}  // namespace

LoaderFrames::LoaderFrames(const SourceFrames& frames, Of of) : frames_(frames), of_(of), places_(places_of(frames)) {}

std::vector<u32> LoaderFrames::within(u32 innermost) const {
  Loading loading;
  find_loader(frames_, places_, innermost, of_, loading);
  return loading.found && !loading.waits ? std::move(loading.frames) : std::vector<u32>();
}

std::map<i32, u64> loader_processes(const ProcessTrace& process) {
  std::map<i32, u64> found;
  const SourceFrames& frames = process.samples.frames;
  const std::vector<Place> places = places_of(frames);
  std::vector<u8> asked(frames.size(), 0);  // 1: is not in a worker's loop, 2: is
  Loading loading;
  const auto loads = [&](const SamplePoint& point) {
    if (point.frame >= asked.size()) return false;
    u8& known = asked[point.frame];
    if (known == 0) {
      find_loader(frames, places, point.frame, Of::Workers, loading);
      known = loading.found ? 2 : 1;
    }
    return known == 2;
  };
  for (const SampledThread& series : process.samples.threads) {
    if (series.process == 0) continue;
    if (std::any_of(series.points.begin(), series.points.end(), loads)) found[series.process] += series.points.size();
  }
  return found;
}

InputOps input_ops_of(const LoadedRun& run) {
  InputOps result;
  OpsByName ops;
  const FileNames names(run);
  u64 stacks = 0;
  for (const ProcessTrace& process : run.processes) add_process(process, names, stacks, ops, result);
  if (!why_not_met({Need::Files}, run)) {
    const std::map<std::string, u64> bytes = bytes_by_loading_function(run, names);
    for (auto& [key, op] : ops) {
      if (op.sum.ahead) continue;
      const auto known = bytes.find(op.sum.op);
      op.sum.bytes = known == bytes.end() ? 0 : known->second;
    }
  }
  for (auto& [key, op] : ops) result.ops.push_back(std::move(op.sum));
  std::stable_sort(result.ops.begin(), result.ops.end(),
                   [](const InputOp& a, const InputOp& b) { return a.total_ns > b.total_ns; });
  return result;
}

}  // namespace gputrace
