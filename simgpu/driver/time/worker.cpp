#include "simgpu/driver/time/worker.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

constexpr Nanos kPollInterval = 50'000;  // of memory that a stream waits on
constexpr Nanos kNotAgain = ~Nanos{0};

struct Worker {
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable done;
  std::vector<Stream*> streams;  // with a queue; references held
  bool started = false;
  bool news = false;
};

Worker& worker() {
  static auto* const kWorker = new Worker;
  return *kWorker;
}

struct Progress {
  bool progressed = false;
  Nanos again = kNotAgain;  // when to look again, if nobody rings before
};

Progress step(Stream& stream) {
  Work* front = nullptr;
  {
    std::lock_guard lock(stream.mutex);
    if (stream.queue.empty()) return {};
    front = &stream.queue.front();  // stays there: only this thread takes it off, and a deque does not move elements
  }
  for (const Place& place : front->after) {
    if (place.stream->processed.load(std::memory_order_acquire) < place.ticket) return {};
  }
  Nanos ready = earliest_start(stream, front->submitted);
  if (front->condition) {
    if (!front->condition(ready)) return {false, now_ns() + kPollInterval};
    ready = std::max(ready, now_ns());
  }
  if (front->at_its_time && now_ns() < ready) return {false, ready};
  const Nanos end = front->run(ready);
  Work finished;  // destroyed outside the lock
  {
    std::lock_guard lock(stream.mutex);
    stream.end.store(std::max(end, stream.end.load()), std::memory_order_release);
    finished = std::move(stream.queue.front());
    stream.queue.pop_front();
    stream.processed.fetch_add(1, std::memory_order_acq_rel);
  }
  for (const Place& place : finished.after) release(place.stream);
  Context& context = *stream.context;
  if (stream.tag.load() != Stream::kTag) {
    std::lock_guard lock(context.mutex);
    context.orphans_end = std::max(context.orphans_end, end);
  }
  context.deferred.fetch_sub(1, std::memory_order_acq_rel);
  return {true, kNotAgain};
}

// One pass over all streams with work; when to look again.
Progress pass(Worker& worker, std::unique_lock<std::mutex>& lock) {
  Progress all;
  const std::vector<Stream*> streams = worker.streams;
  lock.unlock();
  for (Stream* stream : streams) {
    const Progress one = step(*stream);
    all.progressed |= one.progressed;
    all.again = std::min(all.again, one.again);
  }
  lock.lock();
  const auto idle = std::stable_partition(worker.streams.begin(), worker.streams.end(),
                                          [](Stream* stream) { return stream->has_queue(); });
  const std::vector<Stream*> finished(idle, worker.streams.end());
  worker.streams.erase(idle, worker.streams.end());
  for (Stream* stream : finished) release(stream);
  return all;
}

void* run_worker(void*) {
  Worker& own = worker();
  std::unique_lock lock(own.mutex);
  for (;;) {
    own.news = false;
    const Progress all = pass(own, lock);
    if (all.progressed) {
      own.done.notify_all();
      continue;
    }
    if (own.news) continue;
    if (all.again == kNotAgain) {
      own.work.wait(lock);
    } else if (const Nanos now = now_ns(); now < all.again) {
      own.work.wait_for(lock, std::chrono::nanoseconds(all.again - now));
    }
  }
  return nullptr;
}

// With all signals blocked: the program's handlers run on the program's threads.
void start(Worker& worker) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run_worker, nullptr) == 0) {
    pthread_detach(thread);
    pthread_setname_np(thread, "simgpu");
    worker.started = true;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void worker_adopt(Stream& stream) {
  Worker& own = worker();
  std::lock_guard lock(own.mutex);
  if (std::find(own.streams.begin(), own.streams.end(), &stream) == own.streams.end()) {
    retain(&stream);
    own.streams.push_back(&stream);
  }
  own.news = true;
  if (!own.started) start(own);
  own.work.notify_one();
}

void worker_wait(const Place& place) {
  if (place.stream->processed.load(std::memory_order_acquire) >= place.ticket) return;
  Worker& own = worker();
  std::unique_lock lock(own.mutex);
  own.done.wait(lock, [&] { return place.stream->processed.load(std::memory_order_acquire) >= place.ticket; });
}

void worker_wait_context(Context& context) {
  if (context.deferred.load(std::memory_order_acquire) == 0) return;
  Worker& own = worker();
  std::unique_lock lock(own.mutex);
  own.done.wait(lock, [&] { return context.deferred.load(std::memory_order_acquire) == 0; });
}

}  // namespace simgpu
