#include "simgpu/cupti/collector.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "simgpu/cupti/device_clock.h"
#include "simgpu/cupti/knobs.h"

namespace simgpu::cupti {

namespace {

constexpr size_t kWakeBytes = 1u << 20;   // of incoming records: the worker is rung
constexpr Nanos kOwnPeriod = 20'000'000;  // between the worker's rounds, unless the client sets a period

struct Header {
  RecordKind kind;
  uint32_t size;
};

// Records one after the other: Header, bytes, padded to 8.
using Bytes = std::vector<char>;

struct Waiting {
  Nanos known_at;
  uint64_t order;
  Bytes record;  // with its header
};
struct Later {
  bool operator()(const Waiting& a, const Waiting& b) const {
    return a.known_at != b.known_at ? a.known_at > b.known_at : a.order > b.order;
  }
};

struct ClientBuffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  size_t records = 0;
  size_t most_records = 0;  // 0: as many as fit
};

struct Collector {
  std::mutex incoming_mutex;
  Bytes incoming;
  bool rung = false;
  std::condition_variable bell;

  // Taken before the buffers' lock, and by nobody who holds `incoming_mutex`.
  std::mutex drain_mutex;
  std::priority_queue<Waiting, std::vector<Waiting>, Later> waiting;
  std::vector<Waiting> late;  // SIMGPU_CUPTI=late: ended, kept for a flush
  uint64_t order = 0;
  ClientBuffer open;
  std::atomic<bool> has_open{false};

  std::mutex delivery_mutex;
  std::mutex completed_mutex;
  std::deque<ClientBuffer> completed;

  std::atomic<CUpti_BuffersCallbackRequestFunc> request{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete{nullptr};
  std::atomic<size_t> dropped{0};
  std::atomic<uint64_t> record_number{0};
  std::atomic<Nanos> period{0};
  std::mutex worker_mutex;
  bool worker_runs = false;
  std::atomic<bool> worker_stops{false};
  std::thread worker;
};

Collector& the() {
  static auto* const kCollector = new Collector;  // never destroyed: programs flush from their last destructors
  return *kCollector;
}

thread_local bool in_client = false;

// Under drain_mutex.
void close_buffer(Collector& c) {
  if (c.open.data == nullptr) return;
  std::lock_guard lock(c.completed_mutex);
  c.completed.push_back(c.open);
  c.open = {};
  c.has_open.store(false, std::memory_order_relaxed);
}

bool open_buffer(Collector& c) {
  const auto request = c.request.load();
  if (request == nullptr) return false;
  ClientBuffer buffer;
  in_client = true;
  request(&buffer.data, &buffer.size, &buffer.most_records);
  in_client = false;
  const bool aligned = reinterpret_cast<uintptr_t>(buffer.data) % ACTIVITY_RECORD_ALIGNMENT == 0;
  if (buffer.data == nullptr || buffer.size == 0 || !aligned) return false;
  c.open = buffer;
  c.has_open.store(true, std::memory_order_relaxed);
  return true;
}

bool fits(const ClientBuffer& buffer, size_t bytes) {
  return buffer.used + bytes <= buffer.size && (buffer.most_records == 0 || buffer.records < buffer.most_records);
}

uint64_t stamp_at(const char* record, size_t offset) {
  uint64_t stamp = 0;
  std::memcpy(&stamp, record + offset, sizeof stamp);
  return stamp;
}

// Also where the clock jumps back in between, nothing ends before it has begun.
void put_on_our_clock(char* record, const RecordKind& kind, size_t size) {
  uint64_t start = 0;
  for (const uint16_t offset : kind.stamps) {
    if (offset == 0 || offset + sizeof(uint64_t) > size) return;  // older layouts end earlier
    uint64_t stamp = stamp_at(record, offset);
    if (stamp == 0) continue;
    stamp = device_time(stamp);
    if (offset == kind.stamps[0]) start = stamp;
    if (kind.device && (offset == kind.stamps[1] || offset == kind.stamps[2])) stamp = std::max(stamp, start);
    std::memcpy(record + offset, &stamp, sizeof stamp);
  }
}

// Under drain_mutex.
void put(Collector& c, const char* record, const Header& header) {
  const size_t size = header.size;
  if (c.open.data != nullptr && !fits(c.open, size)) close_buffer(c);
  if (c.open.data == nullptr && !open_buffer(c)) {
    drop(1);
    return;
  }
  if (!fits(c.open, size)) {  // not even in an empty one
    close_buffer(c);
    drop(1);
    return;
  }
  char* place = reinterpret_cast<char*>(c.open.data) + c.open.used;
  std::memcpy(place, record, size);
  put_on_our_clock(place, header.kind, size);
  c.open.used += size;
  ++c.open.records;
  if (c.open.most_records != 0 && c.open.records == c.open.most_records) close_buffer(c);
}

void put(Collector& c, const Bytes& record) {
  Header header;
  std::memcpy(&header, record.data(), sizeof header);
  put(c, record.data() + sizeof header, header);
}

// The operation goes on, and the client insists.
void put_unfinished(Collector& c, Bytes record, Nanos now) {
  Header header;
  std::memcpy(&header, record.data(), sizeof header);
  const uint64_t unknown = 0;
  char* bytes = record.data() + sizeof header;
  const auto forget = [&](uint16_t offset) {
    if (offset != 0) std::memcpy(bytes + offset, &unknown, sizeof unknown);
  };
  const RecordKind& kind = header.kind;
  if (kind.start > now) forget(kind.stamps[0]);
  forget(kind.stamps[1]);
  if (kind.device) forget(kind.stamps[2]);
  put(c, record);
}

void ended(Collector& c, Waiting&& record, bool device) {
  if (knobs().late && device) {
    c.late.push_back(std::move(record));
  } else {
    put(c, record.record);
  }
}

// What waits and has ended by then goes on. Under drain_mutex.
void release_waiting(Collector& c, Nanos until) {
  while (!c.waiting.empty() && c.waiting.top().known_at <= until) {
    Waiting record = std::move(const_cast<Waiting&>(c.waiting.top()));  // popped at once
    c.waiting.pop();
    Header header;
    std::memcpy(&header, record.record.data(), sizeof header);
    ended(c, std::move(record), header.kind.device);
  }
}

// Everything whose operation has ended by `now` goes on, in the order of each stream. Under drain_mutex.
void drain(Collector& c, Nanos now) {
  read_client_clock();
  Bytes records;
  {
    std::lock_guard lock(c.incoming_mutex);
    records.swap(c.incoming);
    c.rung = false;
  }
  for (size_t at = 0; at < records.size();) {
    Header header;
    std::memcpy(&header, records.data() + at, sizeof header);
    const size_t whole = sizeof header + header.size;
    const char* record = records.data() + at;
    at += whole;
    if (header.kind.known_at <= now && !(knobs().late && header.kind.device)) {
      release_waiting(c, header.kind.known_at);  // of the same stream, maybe
      put(c, record + sizeof header, header);
      continue;
    }
    c.waiting.push({header.kind.known_at, ++c.order, Bytes(record, record + whole)});
  }
  release_waiting(c, now);
}

// One stream after the other, the last first: as far from the order in time as a client must expect.
void put_late(Collector& c) {
  const auto stream_of = [](const Waiting& w) {
    Header header;
    std::memcpy(&header, w.record.data(), sizeof header);
    return header.kind.stream;
  };
  std::stable_sort(c.late.begin(), c.late.end(),
                   [&](const Waiting& a, const Waiting& b) { return stream_of(a) > stream_of(b); });
  for (const Waiting& record : c.late) put(c, record.record);
  c.late.clear();
}

// In the order in which they were filled; one thread at a time.
void deliver(Collector& c) {
  std::lock_guard delivering(c.delivery_mutex);
  for (;;) {
    ClientBuffer buffer;
    {
      std::lock_guard lock(c.completed_mutex);
      if (c.completed.empty()) return;
      buffer = c.completed.front();
      c.completed.pop_front();
    }
    const auto complete = c.complete.load();
    if (complete == nullptr) continue;
    in_client = true;
    complete(nullptr, 0, buffer.data, buffer.size, buffer.used);
    in_client = false;
  }
}

void work() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_setname_np(pthread_self(), "simcupti");
  Collector& c = the();
  while (!c.worker_stops.load()) {
    {
      const Nanos period = c.period.load();
      std::unique_lock lock(c.incoming_mutex);
      c.bell.wait_for(lock, std::chrono::nanoseconds(period != 0 ? period : kOwnPeriod),
                      [&] { return c.rung || c.worker_stops.load(); });
    }
    if (c.worker_stops.load()) return;
    {
      std::lock_guard lock(c.drain_mutex);
      drain(c, now_ns());
    }
    deliver(c);
  }
}

}  // namespace

void add_record(const void* bytes, size_t size, const RecordKind& kind) {
  Collector& c = the();
  const Header header{kind, static_cast<uint32_t>((size + 7) / 8 * 8)};
  bool ring = false;
  {
    std::lock_guard lock(c.incoming_mutex);
    const size_t at = c.incoming.size();
    c.incoming.resize(at + sizeof header + header.size);
    std::memcpy(c.incoming.data() + at, &header, sizeof header);
    std::memcpy(c.incoming.data() + at + sizeof header, bytes, size);
    ring = c.incoming.size() >= kWakeBytes && !c.rung;
    c.rung = c.rung || ring;
  }
  if (ring) c.bell.notify_one();
}

uint64_t next_record_number() { return the().record_number.fetch_add(1, std::memory_order_relaxed) + 1; }

void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  the().request.store(request);
  the().complete.store(complete);
}

bool has_buffer_callbacks() { return the().request.load() != nullptr; }

void want_buffer() {
  Collector& c = the();
  if (c.has_open.load(std::memory_order_relaxed) || in_client) return;
  std::unique_lock lock(c.drain_mutex, std::try_to_lock);  // who has it asks by himself
  if (lock.owns_lock() && c.open.data == nullptr) open_buffer(c);
}

bool flush(bool forced) {
  if (in_client) return false;
  Collector& c = the();
  {
    std::lock_guard lock(c.drain_mutex);
    const Nanos now = now_ns();
    drain(c, now);
    put_late(c);
    while (forced && !c.waiting.empty()) {
      put_unfinished(c, c.waiting.top().record, now);
      c.waiting.pop();
    }
    if (c.open.records != 0 || forced) close_buffer(c);
  }
  deliver(c);
  return true;
}

void set_flush_period(Nanos period) {
  Collector& c = the();
  c.period.store(period);
  std::lock_guard lock(c.incoming_mutex);
  c.rung = true;
  c.bell.notify_one();
}

size_t take_dropped() { return the().dropped.exchange(0); }
void drop(size_t records) { the().dropped.fetch_add(records); }

void start_worker() {
  Collector& c = the();
  std::lock_guard lock(c.worker_mutex);
  if (c.worker_runs) return;
  c.worker_runs = true;
  c.worker_stops.store(false);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread must be born with them blocked
  c.worker = std::thread(work);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void reset_collector() {
  Collector& c = the();
  {
    std::lock_guard lock(c.worker_mutex);
    if (c.worker_runs && c.worker.get_id() != std::this_thread::get_id()) {
      {
        std::lock_guard incoming(c.incoming_mutex);  // not between the worker's look and its sleep
        c.worker_stops.store(true);
      }
      c.bell.notify_all();
      c.worker.join();
      c.worker_runs = false;
    }
  }
  std::lock_guard drain_lock(c.drain_mutex);
  {
    std::lock_guard lock(c.incoming_mutex);
    c.incoming.clear();
  }
  set_client_clock(nullptr);
  c.waiting = {};
  c.late.clear();
  c.open = {};
  c.has_open.store(false);
  c.request.store(nullptr);
  c.complete.store(nullptr);
  c.dropped.store(0);
  c.period.store(0);
}

}  // namespace simgpu::cupti
