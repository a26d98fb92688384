#include "simgpu/cupti/collector.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "simgpu/cupti/device_clock.h"
#include "simgpu/cupti/knobs.h"
#include "simgpu/cupti/layout.h"
#include "simgpu/cupti/pieces.h"

namespace simgpu::cupti {

namespace {

constexpr Nanos kOwnPeriod = 20'000'000;  // between the worker's rounds, unless the client sets a period

struct ClientBuffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  size_t most_records = 0;  // 0: as many as fit
  Nanos known_at = 0;       // when all of its operations have ended
  Pieces pieces;
};

// Where a thread's records go, or everybody's. Threads with buffers of their own do not wait for each other: what each puts a record into is
// under a mutex that nobody else takes but for a flush.
struct Place {
  std::mutex asking;  // the client for a buffer; taken before the mutex
  std::mutex mutex;   // taken after that of all places, before that of what is filled
  ClientBuffer open;  // under the mutex
  size_t index = 0;   // among the places; under theirs
};

// SIMGPU_CUPTI=late: kept for a flush.
struct Late {
  RecordKind kind;
  std::vector<char> bytes;
};

struct Collector {
  std::mutex places_mutex;  // none of the three is held while the client is called
  std::vector<Place*> places;

  std::mutex mutex;  // of all that follows it
  std::deque<ClientBuffer> filled;
  std::vector<Late> late;
  bool rung = false;
  std::condition_variable bell;

  Place shared;
  std::mutex delivery_mutex;  // one thread at a time hands out
  std::atomic<bool> each{true};
  std::atomic<bool> has_worker{false};
  std::atomic<CUpti_BuffersCallbackRequestFunc> request{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete{nullptr};
  std::atomic<size_t> dropped{0};
  std::atomic<uint64_t> record_number{0};
  std::atomic<Nanos> period{0};
  std::mutex worker_mutex;
  std::atomic<bool> worker_stops{false};
  std::thread worker;
};

Collector& the() {
  static auto* const kCollector = new Collector;  // never destroyed: programs flush from their last destructors
  return *kCollector;
}

thread_local bool in_client = false;

// Under the place's mutex. Not urgent: the worker's next round is soon enough.
void close_buffer(Collector& c, Place& place, bool urgent = true) {
  if (place.open.data == nullptr) return;
  std::lock_guard lock(c.mutex);
  c.filled.push_back(std::move(place.open));
  place.open = {};
  if (!urgent) return;
  c.rung = true;
  c.bell.notify_one();
}

// The thread's own, until it ends: what it does afterwards (a program's atexit functions) goes to everybody's. Words without a destructor, which may
// be read then.
thread_local Place* own_place = nullptr;
thread_local bool own_place_is_over = false;
struct ClosesOwnPlace {
  ~ClosesOwnPlace() {
    own_place_is_over = true;
    Place* const place = own_place;
    own_place = nullptr;
    if (place == nullptr) return;
    Collector& c = the();
    {
      std::lock_guard lock(c.places_mutex);
      {
        std::lock_guard own(place->mutex);
        close_buffer(c, *place, false);  // where thousands of threads end, each would wake the worker
      }
      Place* const last = c.places.back();
      last->index = place->index;
      c.places[place->index] = last;
      c.places.pop_back();
    }
    delete place;
  }
};

Place& place_of_this_thread(Collector& c) {
  if (!c.each.load(std::memory_order_relaxed) || !has_thread_buffers()) return c.shared;
  if (own_place != nullptr) return *own_place;
  if (own_place_is_over) return c.shared;
  thread_local ClosesOwnPlace closes;  // from here on
  static_cast<void>(closes);
  own_place = new Place;
  std::lock_guard lock(c.places_mutex);
  own_place->index = c.places.size();
  c.places.push_back(own_place);
  return *own_place;
}

// False: the client has none.
bool ask_for_buffer(Collector& c, Place& place) {
  std::lock_guard asking(place.asking);
  {
    std::lock_guard lock(place.mutex);
    if (place.open.data != nullptr) return true;  // another thread asked, for all
  }
  const auto request = c.request.load();
  if (request == nullptr) return false;
  ClientBuffer buffer;
  in_client = true;
  request(&buffer.data, &buffer.size, &buffer.most_records);
  in_client = false;
  const bool aligned = reinterpret_cast<uintptr_t>(buffer.data) % ACTIVITY_RECORD_ALIGNMENT == 0;
  if (buffer.data == nullptr || buffer.size == 0 || !aligned) return false;
  std::lock_guard lock(place.mutex);
  place.open = std::move(buffer);
  return true;
}

bool fits(const ClientBuffer& buffer, size_t bytes) {
  return buffer.used + bytes <= buffer.size && (buffer.most_records == 0 || buffer.pieces.size() < buffer.most_records);
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

void put(Collector& c, const void* bytes, size_t size, const RecordKind& kind) {
  Place& place = place_of_this_thread(c);
  const size_t whole = (size + 7) / 8 * 8;
  for (int asked = 0;; ++asked) {
    {
      std::lock_guard lock(place.mutex);
      ClientBuffer& open = place.open;
      if (open.data != nullptr && fits(open, whole)) {
        std::memcpy(open.data + open.used, bytes, size);
        std::memset(open.data + open.used + size, 0, whole - size);
        open.pieces.add({open.used, whole, kind});
        open.used += whole;
        open.known_at = std::max(open.known_at, kind.known_at);
        if (open.pieces.size() == open.most_records) close_buffer(c, place);
        return;
      }
      close_buffer(c, place);
    }
    if (asked == 1 || !ask_for_buffer(c, place)) return drop(1);  // not even in an empty one, or there is none
  }
}

// The operation goes on, and the client insists.
void forget_unknown(char* record, const RecordKind& kind, Nanos now) {
  const uint64_t unknown = 0;
  const auto forget = [&](uint16_t offset) {
    if (offset != 0) std::memcpy(record + offset, &unknown, sizeof unknown);
  };
  if (kind.start > now) forget(kind.stamps[0]);
  forget(kind.stamps[1]);
  if (kind.device) forget(kind.stamps[2]);
}

// Those of operations that have ended, or all: one stream after the other, the last first, as far from the order in time as a client must
// expect.
void put_late(Collector& c, Nanos until) {
  std::vector<Late> ended;
  {
    std::lock_guard lock(c.mutex);
    const auto goes_on = [&](const Late& late) { return late.kind.known_at > until; };
    const auto rest = std::stable_partition(c.late.begin(), c.late.end(), goes_on);
    std::move(rest, c.late.end(), std::back_inserter(ended));
    c.late.erase(rest, c.late.end());
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Late& a, const Late& b) { return a.kind.stream > b.kind.stream; });
  for (const Late& record : ended) put(c, record.bytes.data(), record.bytes.size(), record.kind);
}

// The first filled buffer that may go; false: there is none. Under the mutex.
bool take_filled(Collector& c, Nanos now, bool forced, ClientBuffer* out) {
  const auto found = std::find_if(c.filled.begin(), c.filled.end(),
                                  [&](const ClientBuffer& b) { return forced || b.known_at <= now; });
  if (found == c.filled.end()) return false;
  *out = std::move(*found);
  c.filled.erase(found);
  return true;
}

void deliver(Collector& c, Nanos now, bool forced) {
  std::lock_guard delivering(c.delivery_mutex);
  read_client_clock();
  for (;;) {
    ClientBuffer buffer;
    {
      std::lock_guard lock(c.mutex);
      if (!take_filled(c, now, forced, &buffer)) return;
    }
    buffer.pieces.for_each([&](const Piece& piece) {
      char* record = reinterpret_cast<char*>(buffer.data + piece.offset);
      if (piece.kind.known_at > now) forget_unknown(record, piece.kind, now);
      put_on_our_clock(record, piece.kind, piece.size);
    });
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
  for (;;) {
    {
      const Nanos period = c.period.load();
      std::unique_lock lock(c.mutex);
      c.bell.wait_for(lock, std::chrono::nanoseconds(period != 0 ? period : kOwnPeriod),
                      [&] { return c.rung || c.worker_stops.load(); });
      c.rung = false;
    }
    if (c.worker_stops.load()) return;
    deliver(c, now_ns(), false);
  }
}

void start_worker(Collector& c) {
  if (c.has_worker.load(std::memory_order_acquire)) return;
  std::lock_guard lock(c.worker_mutex);
  if (c.has_worker.load()) return;
  c.worker_stops.store(false);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread must be born with them blocked
  c.worker = std::thread(work);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  c.has_worker.store(true, std::memory_order_release);
}

}  // namespace

void add_record(const void* bytes, size_t size, const RecordKind& kind) {
  Collector& c = the();
  if (knobs().late && kind.device) {
    const char* from = static_cast<const char*>(bytes);
    std::lock_guard lock(c.mutex);
    c.late.push_back({kind, std::vector<char>(from, from + size)});
  } else {
    put(c, bytes, size, kind);
  }
  start_worker(c);
}

uint64_t next_record_number() { return the().record_number.fetch_add(1, std::memory_order_relaxed) + 1; }

void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  the().request.store(request);
  the().complete.store(complete);
}

bool has_buffer_callbacks() { return the().request.load() != nullptr; }

void want_buffer() {
  Collector& c = the();
  if (!in_client) ask_for_buffer(c, place_of_this_thread(c));
}

void set_per_thread(bool each) { the().each.store(each); }
bool per_thread() { return the().each.load(); }

bool flush(bool forced) {
  if (in_client) return false;
  Collector& c = the();
  const Nanos now = now_ns();
  put_late(c, forced ? ~Nanos{0} : now);
  {
    std::lock_guard lock(c.places_mutex);
    const auto close = [&](Place& place) {
      std::lock_guard own(place.mutex);
      if (forced || (!place.open.pieces.empty() && place.open.known_at <= now)) close_buffer(c, place);
    };
    close(c.shared);
    for (Place* place : c.places) close(*place);
  }
  deliver(c, now, forced);
  return true;
}

void set_flush_period(Nanos period) {
  Collector& c = the();
  c.period.store(period);
  std::lock_guard lock(c.mutex);
  c.rung = true;
  c.bell.notify_one();
}

size_t take_dropped() { return the().dropped.exchange(0); }
void drop(size_t records) { the().dropped.fetch_add(records); }

void reset_collector() {
  Collector& c = the();
  {
    std::lock_guard lock(c.worker_mutex);
    if (c.has_worker.load() && c.worker.get_id() != std::this_thread::get_id()) {
      {
        std::lock_guard records(c.mutex);  // not between the worker's look and its sleep
        c.worker_stops.store(true);
      }
      c.bell.notify_all();
      c.worker.join();
      c.has_worker.store(false);
    }
  }
  set_client_clock(nullptr);
  c.request.store(nullptr);
  c.complete.store(nullptr);
  const auto forget = [](Place& place) {
    std::lock_guard own(place.mutex);
    place.open = {};
  };
  {
    std::lock_guard lock(c.places_mutex);
    forget(c.shared);
    for (Place* place : c.places) forget(*place);
  }
  std::lock_guard lock(c.mutex);
  c.filled.clear();
  c.late.clear();
  c.dropped.store(0);
  c.period.store(0);
}

}  // namespace simgpu::cupti
