// Runs a Timeline on a thread of its own, behind the pass over the records: what the pass tells goes into batches, the
// thread takes them in order. So the statistics of the host and the timeline of the devices are made at the same time,
// and the Timeline sees exactly what it would see if it were called directly.
//
//   pass ── called, operation, ordered, object, collective, device ──▶ batch ──▶ (at most kBatches) ──▶ Timeline
//
//   · The facts that both know (kernels, functions, copies, graphs, contexts) have one owner at a time for their
//     structure: the pass calls settle() before it adds an entry or changes what one means, and looks it up again after
//     that; the Timeline asks through FactsDoor, which waits until the pass holds still. In between each side writes
//     only fields of its own.
//   · Memory: kBatches batches of kBatchBytes, and the chunks whose device records wait in them (kChunks a batch).
//   · What the thread throws, settle() and finish() throw again.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "analysis/read/tick_clock.h"
#include "analysis/timeline/timeline.h"

namespace gputrace {

class TimelineFeed : private FactsDoor {
 public:
  static constexpr std::size_t kBatchBytes = 256u << 10, kBatches = 6, kChunks = 4;

  TimelineFeed(const TraceReader& reader, TimeWindow window, ProcessTrace& facts, FactsDoor& door);
  ~TimelineFeed() override;
  TimelineFeed(const TimelineFeed&) = delete;
  TimelineFeed& operator=(const TimelineFeed&) = delete;

  // As Timeline has them.
  void called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::What what);
  void operation(const HostOperation& operation, const StreamName& stream);
  void ordered(const StreamOrder& record, const StreamName& stream);
  void object(const ObjectCall& record);
  void collective(u32 thread, Nanos begin);
  // Records of device activity between the two; `chunk` keeps them where they are.
  void device(const u8* begin, const u8* end, const std::shared_ptr<const void>& chunk);

  // Everything that was told has been taken: the facts are the caller's alone until it tells more.
  void settle();
  void finish();
  // Before the first record. A visitor is called from inside the functions above: there is no thread then.
  void set_visitor(OperationVisitor* visitor);

 private:
  enum class What : u32 { Called, Operation, Ordered, Object, Collective, Device };
  struct Called {
    Nanos begin, end;
    u32 thread;
    u16 call;
    HostLog::What meaning;
  };
  struct Given {
    HostOperation operation;
    StreamName stream;
  };
  struct Order {
    StreamOrder record;
    StreamName stream;
  };
  struct Together {
    Nanos begin;
    u32 thread;
  };
  struct Run {
    const u8* begin;
    const u8* end;
  };
  struct Batch {
    std::vector<u64> words = std::vector<u64>(kBatchBytes / 8);
    std::size_t used = 0;
    std::vector<std::shared_ptr<const void>> chunks;
  };

  template <typename Told>
  void tell(What what, const Told& told);
  void hand_over();
  template <typename Done>
  void wait_until(std::unique_lock<std::mutex>& lock, Done&& done);
  void take_batches();
  void take(const Batch& batch);
  template <typename Told>
  static Told told(const u64*& at);
  void take_run(const Run& run);

  u32 kernel_of(const DeviceShape& shape, u32 context, u64 node, u64 exec) override;
  u32 copies_of(const DeviceShape& shape, bool in_graph) override;
  u32 context_of(u64 handle) override;
  template <typename Ask>
  u32 while_still(Ask&& ask);

  FactsDoor& door_;
  TickClock clock_;
  Timeline timeline_;
  bool direct_ = false;
  std::unique_ptr<Batch> open_;  // being filled; the pass alone touches it

  std::mutex mutex_;
  std::condition_variable work_, room_;  // the thread waits for the one, the pass for the other
  std::vector<std::unique_ptr<Batch>> waiting_, spare_;
  bool busy_ = false;    // a batch is being taken
  bool asking_ = false;  // the thread asks for the pass to hold still
  bool still_ = false;   // it does
  bool end_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace gputrace
