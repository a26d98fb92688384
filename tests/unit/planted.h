// A program as it would run: one host thread (or several), streams, a device that starts what is given to it 5 us after its
// call's begin when its stream is free. What it does is written down as a trace; the same program without something is
// another script, so what that would bring is known exactly.
//
//   Planted program;
//   for (…) program.run(4 * kUs, 100 * kUs), program.wait(), program.sleep(300 * kUs);
//   LoadedRun run = program.load();      // program.span(): from the first launch's begin to the end of the last operation
#pragma once

#include <algorithm>
#include <array>
#include <map>

#include "analysis/findings/findings.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {

inline constexpr Nanos kUs = 1000, kMs = 1'000'000;

class Planted {
 public:
  static constexpr u64 kStream = 0x51;
  // cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>(…): function 2 of run().
  static constexpr const char* kConverter =
      "_ZN5cudnn3ops16nchwToNhwcKernelI6__halfS2_fLb0ELb1EL21cudnnKernelDataType_t0EEEvNS0_18nchw2nhwc_params_tIT1_"
      "EEPKT_PT0_";
  static constexpr const char* kCollective =
      "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";
  static constexpr Nanos kWay = 5 * kUs,
                         kReturn = 2 * kUs;  // call to start; end of what is waited for to the wait's end
  static constexpr i64 kPinnedRate = 20, kPageableRate = 10;  // bytes a ns

  Planted() : main_(trace_.thread(100)), thread_(main_) {
    trace_.name_function(0xf1, "relu_kernel", 0xa0);
    trace_.name_function(0xf2, "ampere_sgemm_128x64_nn", 0xa0);
    trace_.name_function(0xf3, kConverter, 0xa0);
    trace_.name_function(0xf4, kCollective, 0xa0);
    names_[0] = trace_.text("relu_kernel"), names_[1] = trace_.text("ampere_sgemm_128x64_nn"),
    names_[2] = trace_.text(kConverter), names_[3] = trace_.text(kCollective);
    trace_.reading(now_);
    for (const u64 stream : {kStream, kStream + 1, kStream + 2}) trace_.independent(stream);
  }

  // The other host thread goes on at this one's time: this one handed the work to it.
  void hand_over() {
    if (!second_) second_ = trace_.thread(101);
    tid_ = tid_ == 100 ? 101 : 100;
    thread_ = tid_ == 100 ? main_ : *second_;
  }

  // A thread that has done nothing yet goes on at this one's time.
  void begin_thread() {
    tid_ = next_tid_++;
    thread_ = trace_.thread(tid_);
  }

  // The first thread goes on.
  void end_threads() {
    tid_ = 100;
    thread_ = main_;
  }
  // What comes now is at that time, beside what came since.
  void at(Nanos time) { now_ = time; }

  // Kernels from here on have so many blocks, of which two fit a multiprocessor at a time.
  void blocks(u32 blocks) {
    blocks_ = blocks;
    trace_.add<FunctionFacts>(TraceBuilder::definitions(), "", 2, 2, [](auto& r) {
      r.function = 0xf1, r.context = 0xc0, r.registers = 128, r.max_threads = 1024;
      r.static_shared_bytes = r.local_bytes = r.const_bytes = 0, r.ptx_version = r.binary_version = 90;
    });
  }
  void run(Nanos call, Nanos kernel, int which = 0, u64 stream = kStream) {
    trace_.launch(thread_, 0xf1 + static_cast<u64>(which), now_, now_ + call, stream, blocks_);
    give(call, kernel, stream, which, kCallback_cuLaunchKernel);
  }
  // One launch of a graph of so many kernels, 1.5 us between them.
  void replay(Nanos call, int kernels, Nanos kernel, u64 stream = kStream) {
    trace_.add<GraphLaunch>(thread_, "cuGraphLaunch", now_, now_ + call,
                            [&](auto& r) { r.exec = 0x62, r.context = 0xc0, r.stream = stream; });
    give(call, kernels * kernel + (kernels - 1) * 1500, stream, 0, kCallback_cuGraphLaunch);
  }
  // Calls of asynchronous copies take that long, whatever the copies do.
  void copy_calls_take(Nanos call) { copy_call_ = call; }
  void copy_to_device(i64 bytes, MemoryKind host, bool async, u64 stream = kStream) {
    copy(bytes, host, async, stream, CopyKind::HtoD);
  }
  void copy_to_host(i64 bytes, MemoryKind host, bool async, u64 stream = kStream) {
    copy(bytes, host, async, stream, CopyKind::DtoH);
  }
  // As a framework copies one tensor into another.
  void copy_on_device(Nanos length, u64 stream = kStream) {
    trace_.add<Copy>(thread_, "cuMemcpyDtoDAsync_v2", now_, now_ + copy_call_, [&](auto& r) {
      r.kind = static_cast<u8>(CopyKind::DtoD), r.destination = 0x10000, r.source = 0x90000, r.bytes = 4096;
      r.asynchronous = true, r.context = 0xc0, r.stream = stream;
      r.destination_memory = r.source_memory = static_cast<u8>(MemoryKind::Device);
    });
    give(copy_call_, length, stream, -1, kCallback_cuMemcpyDtoDAsync_v2, 4096, CopyKind::DtoD);
  }
  void set(Nanos length, bool async) {
    const Nanos end = async ? now_ + 4 * kUs : ready(kStream, now_ + kWay) + length + kReturn;
    trace_.add<Memset>(thread_, async ? "cuMemsetD8Async" : "cuMemsetD8_v2", now_, end, [&](auto& r) {
      r.destination = 0x10000, r.bytes = 4096, r.context = 0xc0, r.asynchronous = async, r.element_bytes = 1;
      r.stream = kStream;
    });
    give(end - now_, length, kStream, -2, kCallback_cuMemsetD8Async);
  }
  // Waits return so much later than usual.
  void wake_late(Nanos by) { late_ = by; }
  void wait(u64 stream = kStream) { sync(SyncKind::Stream, stream, free_[stream]); }
  // A result that the host needs: 5 us at the device.
  void fetch() {
    copy_to_host(100'000, MemoryKind::Pinned, true);
    wait();
  }
  void wait_for_all() {
    Nanos until = 0;
    for (const auto& [stream, free] : free_) until = std::max(until, free);
    sync(SyncKind::Context, 0, until);
  }
  void record(u64 event, u64 stream = kStream) {
    order(OrderKind::EventRecord, event, stream);
    events_[event] = free_[stream];
  }
  void await(u64 event, u64 stream) {
    order(OrderKind::StreamWaitEvent, event, stream);
    free_[stream] = std::max(free_[stream], events_[event]);
  }
  void wait_for_event(u64 event) { sync(SyncKind::Event, event, events_[event]); }
  // Asks whether the event is done, so long after each answer, until it is.
  void poll(u64 event, Nanos pause) {
    for (bool done = false; !done; now_ += done ? 0 : pause) {
      done = now_ >= events_[event];
      trace_.add<ObjectCall>(
          thread_, "cuEventQuery", now_, now_ + kUs,
          [&](auto& r) {
            r.object = event, r.kind = static_cast<u32>(ObjectKind::Event);
            r.what = static_cast<u32>(ObjectAct::Queried);
          },
          done ? 0 : 600);
      now_ += kUs;
    }
  }
  void host_function(Nanos length, u64 stream = kStream) {
    const Nanos given = now_;
    order(OrderKind::HostFunction, 0x99, stream);
    free_[stream] = std::max(free_[stream], given + kUs) + length;
  }
  void allocate(Nanos call, AllocKind kind = AllocKind::Device) {
    trace_.add<Alloc>(thread_, "cuMemAlloc_v2", now_, now_ + call, [&](auto& r) {
      r.kind = static_cast<u32>(kind), r.address = 0x100000 + 256 * ++allocations_, r.bytes = 64, r.device = 0;
    });
    now_ += call;
  }
  // Memory of that size at the given place; freed again with the same number.
  void take(u64 number, u64 bytes) {
    trace_.add<Alloc>(thread_, "cuMemAlloc_v2", now_, now_ + kUs, [&](auto& r) {
      r.kind = static_cast<u32>(AllocKind::Device), r.address = number << 32, r.bytes = bytes, r.device = 0;
    });
    now_ += kUs;
  }
  void give_back(u64 number) {
    trace_.add<Free>(thread_, "cuMemFree_v2", now_, now_ + kUs,
                     [&](auto& r) { r.kind = static_cast<u32>(AllocKind::Device), r.address = number << 32; });
    now_ += kUs;
  }
  // Freeing waits for the device.
  void free(Nanos call) {
    const Nanos end = std::max(now_, free_[kStream]) + call;
    trace_.add<Free>(thread_, "cuMemFree_v2", now_, end, [&](auto& r) {
      r.kind = static_cast<u32>(AllocKind::Device), r.address = 0x100000 + 256 * allocations_;
    });
    now_ = end;
  }
  void load_module(Nanos call) {
    trace_.add<ModuleLoad>(TraceBuilder::definitions(), "cuModuleLoadData", now_, now_ + call, [&](auto& r) {
      r.module = 0xa1, r.what = static_cast<u32>(ModuleAct::Module), r.thread = static_cast<u32>(tid_);
    });
    now_ += call;
  }
  // A kernel's function is asked for, which is there.
  void look_up(Nanos call) {
    trace_.add<FunctionGet>(TraceBuilder::definitions(), "cuKernelGetFunction", now_, now_ + call, [&](auto& r) {
      r.function = 0xf1, r.module = 0xa1, r.name = 0, r.kind = 0, r.thread = static_cast<u32>(tid_);
    });
    now_ += call;
  }
  Nanos now() const { return now_; }
  // An operation of a framework, from `begin` until now.
  void operation(const std::string& name, Nanos begin) {
    const auto [known, fresh] = operations_.try_emplace(name, static_cast<u32>(operations_.size() + 1));
    const u32 id = known->second;
    if (fresh) {
      const u64 text = trace_.text(name);
      trace_.add<StackFrame>(TraceBuilder::definitions(), "", 2, 2, [&](auto& r) {
        r.function = text, r.id = id, r.language = static_cast<u32>(SourceLanguage::Operation);
      });
    }
    trace_.add<Operation>(thread_, "", begin, now_, [&](auto& r) { r.frame = id, r.sequence = ~u64{0}; });
  }
  void ask_device_pointer() { trace_.add_call(thread_, "cuMemHostGetDevicePointer_v2", now_, now_ + kUs), now_ += kUs; }
  void sleep(Nanos time) { now_ += time; }
  // CUPTI empties a buffer in the program's thread.
  void held(Nanos time) {
    trace_.overhead(1u << 16, tid_, now_, now_ + time, now_ + time);
    now_ += time;
  }

  // CUPTI's buffers never came whose operations these are, by their number: those of a program that was killed, say.
  template <typename Wanted>
  void lose(Wanted&& wanted) {
    for (std::size_t i = 0; i < ran_.size(); ++i) ran_[i].lost = wanted(i, ran_.size());
  }
  // The device's stamps say so much later than it was; the readings of its clock allow for that.
  void clocks_differ(Nanos by) { off_ = by; }

  Nanos span() const { return last_ - first_; }
  LoadedRun load() {
    const Nanos end = std::max(now_, last_) + 10 * kUs;
    u32 correlation = 0;
    for (const Ran& each : ran_) {
      ++correlation;
      if (!each.lost) trace_.key(each.tid, correlation, each.begin, each.end, end, each.callback);
    }
    correlation = 0;
    for (Ran each : ran_) {
      ++correlation;
      if (each.lost) continue;
      each.start += off_, each.finish += off_;
      write(each, correlation, end + off_);
    }
    trace_.reading(end + off_ + kUs, 2 * std::max(off_, -off_));
    return trace_.load_all();
  }
  DeviceBuilder& trace() { return trace_; }
  TraceBuilder::Thread main() const { return main_; }
  TraceBuilder::Thread other() const { return *second_; }  // once it was handed over to
  // A look of the sidecar's. `tid`: at a thread that calls nothing, whatever `thread` says; `process`: at one that was started by this one.
  void look_at(TraceBuilder::Thread thread, u32 frame, Nanos at, WaitFor waits, i32 tid = 0, i32 process = 0) {
    trace_.add<Sample>(TraceBuilder::definitions(), "", at, at, [&](auto& r) {
      r.frame = frame, r.frames = 1, r.slot = tid ? 0 : static_cast<u32>(thread.index), r.incarnation = tid ? 0 : 1;
      r.tid = tid, r.process = process, r.waits = static_cast<u32>(waits),
      r.flags = waits == WaitFor{} ? static_cast<u32>(kSampleRan) : 0;
    });
  }

 private:
  struct Ran {
    i32 tid;
    Nanos begin, end, start, finish;
    int which;  // kernel; -1 copy, -2 memset
    u64 stream, bytes;
    CopyKind kind;
    u32 callback;
    u32 blocks;
    bool lost = false;
  };
  Nanos ready(u64 stream, Nanos at) { return std::max(at, free_[stream]); }
  void give(Nanos call, Nanos length, u64 stream, int which, u32 callback, u64 bytes = 4096,
            CopyKind kind = CopyKind::HtoD) {
    const Nanos start = ready(stream, now_ + kWay);
    ran_.push_back({tid_, now_, now_ + call, start, start + length, which, stream, bytes, kind, callback, blocks_});
    if (first_ == 0) first_ = now_;
    now_ += call;
    free_[stream] = start + length;
    last_ = std::max(last_, start + length);
  }
  void copy(i64 bytes, MemoryKind host, bool async, u64 stream, CopyKind kind) {
    const bool to_host = kind == CopyKind::DtoH;
    const bool pinned = host == MemoryKind::Pinned;
    const Nanos length = bytes / (pinned ? kPinnedRate : kPageableRate);
    // Out of pageable memory the driver has taken the last piece into its own buffer a while before the copy ends.
    const Nanos finish = ready(stream, now_ + kWay) + length;
    const Nanos end = !async    ? finish + kReturn
                      : pinned  ? now_ + copy_call_
                      : to_host ? finish + kReturn
                                : std::max(now_ + copy_call_, finish - 10 * kUs);
    const std::string name = std::string(to_host ? "cuMemcpyDtoH" : "cuMemcpyHtoD") + (async ? "Async_v2" : "_v2");
    trace_.add<Copy>(thread_, name, now_, end, [&](auto& r) {
      r.kind = static_cast<u8>(kind), r.destination = 0x10000, r.source = 0x90000;
      r.bytes = static_cast<u64>(bytes), r.asynchronous = async, r.context = 0xc0, r.stream = stream;
      (to_host ? r.destination_memory : r.source_memory) = static_cast<u8>(host);
    });
    give(end - now_, length, stream, -1, to_host ? kCallback_cuMemcpyDtoHAsync_v2 : kCallback_cuMemcpyHtoDAsync_v2,
         static_cast<u64>(bytes), kind);
  }
  void sync(SyncKind what, u64 object, Nanos until) {
    const Nanos end = std::max(now_, until + (until > now_ ? late_ : 0)) + kReturn;
    trace_.add<Sync>(thread_,
                     what == SyncKind::Stream  ? "cuStreamSynchronize"
                     : what == SyncKind::Event ? "cuEventSynchronize"
                                               : "cuCtxSynchronize",
                     now_, end, [&](auto& r) { r.what = static_cast<u32>(what), r.object = object, r.context = 0xc0; });
    now_ = end;
  }
  void order(OrderKind what, u64 object, u64 stream) {
    trace_.order(thread_, what, object, stream, now_);
    now_ += kUs;
  }
  void write(const Ran& each, u32 correlation, Nanos end) {
    const u32 stream = static_cast<u32>(each.stream - kStream) + 7;
    if (each.callback == kCallback_cuGraphLaunch) {
      trace_.add<DeviceGraph>(trace_.collector(), "", end, end, [&](auto& r) {
        r.start = trace_.on_device(each.start), r.finish = trace_.on_device(each.finish), r.correlation = correlation;
        r.context = 1, r.stream = stream, r.graph = 5;
      });
    } else if (each.which == -1) {
      constexpr u8 kOfCupti[] = {0, 1, 2, 8};  // CUpti_ActivityMemcpyKind, by CopyKind
      trace_.copy(correlation, kOfCupti[static_cast<unsigned>(each.kind)], each.bytes, each.start, each.finish, end,
                  stream);
    } else if (each.which == -2) {
      trace_.add<DeviceMemset>(trace_.collector(), "", end, end, [&](auto& r) {
        r.start = trace_.on_device(each.start), r.finish = trace_.on_device(each.finish), r.correlation = correlation;
        r.bytes = each.bytes, r.context = 1, r.stream = stream;
      });
    } else {
      trace_.kernel(correlation, names_.at(static_cast<size_t>(each.which)), each.start, each.finish, end, stream,
                    each.blocks);
    }
  }

  DeviceBuilder trace_;
  TraceBuilder::Thread main_, thread_;
  std::optional<TraceBuilder::Thread> second_;
  i32 tid_ = 100, next_tid_ = 102;
  std::array<u64, 4> names_ = {};
  u64 allocations_ = 0;
  u32 blocks_ = 8;
  Nanos now_ = kMs, first_ = 0, last_ = 0;
  Nanos off_ = 0, late_ = 0, copy_call_ = 4 * kUs;
  std::map<u64, Nanos> free_, events_;
  std::map<std::string, u32> operations_;
  std::vector<Ran> ran_;
};

}  // namespace gputrace::test
