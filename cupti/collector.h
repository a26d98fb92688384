// The state of device collection in one process, and what its parts do to it. Internal to cupti/.
//
//   control lock   held around every call of CUPTI that changes its state, and around flushes; bounded waits only
//   own thread     flushes, reads buffers, writes records; the only one that touches ring, names, rules
//   other threads  open and close the window, step aside for other clients; CUPTI's callbacks touch buffers alone
#pragma once

#include <atomic>

#include "cupti/api.h"
#include "cupti/buffers.h"
#include "cupti/library.h"
#include "cupti/loader.h"
#include "cupti/names.h"
#include "cupti/records.h"
#include "cupti/ring.h"
#include "trace/record.h"

namespace gputrace {

// Alone in a page that fork wipes: a child reads 0 and leaves everything alone.
struct alignas(4096) Alive {
  std::atomic<u32> alive;
};

// What CUPTI has one of for the whole process: another client must find it as it would be without us.
struct CuptiSettings {
  bool changed = false;  // by us: the rest says what they were
  u32 thread_ids = 0;
  u8 zeroed_buffers = 0;
};

// The thread of our own. Due: it begins with the first work for a device.
enum class FetchThread : u32 { None, Due, Runs, Ended };

struct Collector {
  DeviceOptions options;
  DeviceHost host;
  CuptiApi api;
  u32 version = 0;
  Sentence library;  // which, and why
  i32 pid = 0;

  std::atomic<u32> state{0};               // DeviceCollection; 0: not started. Changed under the lock
  std::atomic<u32> lock{0};                // tid of the holder
  u64 kinds = 0;                           // that are on; under the lock
  bool keys = false;                       // calls are numbered by DeviceApi records; under the lock
  CuptiSettings settings;                  // under the lock
  std::atomic<bool> registered{false};     // our callbacks are CUPTI's
  std::atomic<bool> clients_clock{false};  // CUPTI's stamps are those of another client's timestamp callback
  std::atomic<bool> clock_changed{false};  // since our thread last looked
  std::atomic<bool> wants_buffers{false};  // false: a buffer that CUPTI asks for is for another client's records

  ActivityBuffers buffers;
  std::atomic<u32> wake{0};      // futex word: counted up to wake the thread
  std::atomic<u32> stopping{0};  // the process exits
  std::atomic<u32> stopped{0};   // futex word: the thread has done all that it will
  std::atomic<FetchThread> thread{FetchThread::None};
  std::atomic<i32> thread_id{0};

  // Own thread.
  DeviceRing ring;
  KernelNames names;
  RecordRules rules;
  static constexpr u32 kReasons = 8, kKinds = 64;
  u64 losses[kReasons][kKinds]{};  // by DeviceLossReason and CUPTI's kind, not recorded yet
  bool any_loss = false;
  bool forced = false;  // CUPTI was made to give all that it has, what runs included: the process ends
};

extern Collector collector;
extern Alive collector_alive;

// Whether this process is the one that started, and CUPTI is still ours to call.
bool collector_is_ours();

// ------------------------------------------------------------------ control.cpp
void sleep_briefly();
// False: the holder did not let go in that time.
bool lock_control(Nanos patience = 2'000'000'000);
void unlock_control();
class ControlLock {
 public:
  ControlLock() : held_(lock_control()) {}
  ~ControlLock() {
    if (held_) unlock_control();
  }
  ControlLock(const ControlLock&) = delete;
  ControlLock& operator=(const ControlLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  bool held_;
};

// All of these: under the lock, on an untraced thread.
// Registers and enables; false: another client is there, or it failed: recorded. `begin`: since when the thread has waited for it; 0: since now.
bool switch_on(const char* why, Nanos begin = 0);
void switch_off_kinds();           // disables what is on; errors are ignored
void await_window(Nanos begin);    // opened since then, and nothing is switched on yet
void pause_collection();           // the window is over
void step_aside(const char* why);  // another client takes over
void fail_collection(const char* call, CuptiResult result);
bool checked(const char* call, CuptiResult result);  // false: failed, which is recorded
// Writes a DeviceState record with this reason.
void record_state(DeviceCollection state, const char* reason);
// Reads CUPTI's clock between two readings of ours. False: it failed.
bool take_device_anchor(DeviceClock& anchor);
// Whether the session's window is open now.
bool window_is_open();

// ------------------------------------------------------------------ thread.cpp
// False: it could not be. From Due alone; whoever comes second gets true.
bool start_thread();
// Device records will be fetched, or are.
bool fetches();
void wake_thread();
// On our thread. No room for a bounded time: lost, and counted.
void write_record(RecordHeader& record);
void count_loss(DeviceLossReason reason, u64 count, u32 kind);

// ------------------------------------------------------------------ reading.cpp
// CUPTI's callbacks: ours, or, for a buffer that is another client's, theirs.
void buffer_requested(u8** buffer, std::size_t* size, std::size_t* max_records);
void buffer_completed(void* context, u32 stream, u8* buffer, std::size_t size, std::size_t valid_size);
// On our thread: parses the buffers that have come back. Whether there were any.
bool read_buffers();
// Waits until our thread has read what came back: CUPTI is about to go, and with it all that its records point to. What
// is not read in a bounded time is lost, and counted. Not under the lock, which our thread needs.
void finish_reading();

// ------------------------------------------------------------------ loader.cpp
// On, or outside of the window. Only then CUPTI is asked for anything: where another client is there it is left alone.
bool device_is_on();

// ------------------------------------------------------------------ clones.cpp
bool device_wants_nodes();
// Under the lock: ends our subscription of an instantiating call, whether or not it has returned; only where no thread is
// in such a call any more (false: one is).
void stop_listening();
bool stop_unheard();

// ------------------------------------------------------------------ clients.cpp
// Whether another client uses CUPTI now, as far as its calls passed through us.
bool client_is_present();
// Whether the last one that was there is gone, and long enough that it will not come back at once.
bool client_has_left();
// Whether the one subscriber that CUPTI can have is a client whose calls passed through us.
bool subscriber_is_known();
void client_requested(u8** buffer, std::size_t* size, std::size_t* max_records);
void client_completed(void* context, u32 stream, u8* buffer, std::size_t size, std::size_t valid_size);

}  // namespace gputrace
