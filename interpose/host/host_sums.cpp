#include "interpose/host/host_sums.h"

#include <atomic>
#include <cstring>

#include "base/raw_syscall.h"
#include "ringbuf/host_table.h"
#include "trace/string_id.h"

namespace gputrace::host {
namespace {

// Of a look-up: in a table that is three quarters full all of them are taken once in a hundred million times (0.75^64).
constexpr u32 kMostSteps = 64;

constinit std::atomic<char*> memory{nullptr};
constinit HostTableLayout layout{};

u64 mixed(u64 value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ull;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ull;
  return value ^ value >> 32;
}

template <typename Entry>
struct Found {
  Entry* entry = nullptr;  // nullptr: there is none
  bool is_new = false;
};
// The entry of `key` among `count`; where there is none it is taken if `may_take`. `key_of` is its first word.
template <typename Entry>
Found<Entry> entry_of(Entry* entries, u32 count, u64 key, std::atomic<u64> Entry::*key_of, bool may_take = true) {
  u64 hash = mixed(key);
  // Each step anywhere, whatever `count` divides by: a stride that shares a factor with it would see few entries.
  for (u32 step = 0; step < kMostSteps; ++step, hash = mixed(hash + 1)) {
    const u64 at = hash % count;
    u64 held = (entries[at].*key_of).load(std::memory_order_acquire);
    if (held == key) return {&entries[at]};
    if (held != 0) continue;
    if (!may_take) return {};
    if ((entries[at].*key_of).compare_exchange_strong(held, key, std::memory_order_acq_rel))
      return {&entries[at], true};
    if (held == key) return {&entries[at]};
  }
  return {};
}

template <typename Sum>
void add_to(Sum& sum, u64 length) {
  sum.total.fetch_add(length, std::memory_order_relaxed);
  u64 longest = sum.longest.load(std::memory_order_relaxed);
  while (length > longest && !sum.longest.compare_exchange_weak(longest, length, std::memory_order_relaxed)) {
  }
  sum.count.fetch_add(1, std::memory_order_release);  // last: whoever sees it sees the rest
}

HostTableHead& head(char* table) { return *reinterpret_cast<HostTableHead*>(table); }

// 0: it has none and `may_take` does not allow one, or there is no room.
u32 number_of(char* table, const char* path, u64 length, bool may_take) {
  auto* paths = reinterpret_cast<HostPath*>(table + layout.paths_at);
  const auto [entry, is_new] = entry_of(paths, layout.paths, text_id(path, length), &HostPath::hash, may_take);
  if (!entry) return 0;
  if (is_new) {
    head(table).paths_used.fetch_add(1, std::memory_order_relaxed);
    const u64 at = head(table).text_used.fetch_add(length, std::memory_order_relaxed);
    if (at + length <= layout.text_size) {
      std::memcpy(table + layout.text_at + at, path, length);
      entry->offset.store(static_cast<u32>(at), std::memory_order_relaxed);
      entry->length.store(static_cast<u32>(length), std::memory_order_release);
    }
  }
  return static_cast<u32>(entry - paths) + 1;
}

bool is_nearly_full(char* table) {
  const HostTableHead& state = head(table);
  const auto nearly_all = [](const std::atomic<u64>& used, u64 of) {
    return used.load(std::memory_order_relaxed) > of - of / 4;  // beyond it look-ups take long
  };
  return nearly_all(state.paths_used, layout.paths) || nearly_all(state.files_used, layout.files) ||
         nearly_all(state.text_used, layout.text_size);
}

}  // namespace

void set_table(char* table, u64 size) {
  layout = host_table_layout(size);
  memory.store(table, std::memory_order_release);
}

void add_file(u32 path, u32 frame, FileCall call, u64 bytes, Nanos length) {
  char* const table = memory.load(std::memory_order_acquire);
  if (!table) return;
  auto* sums = reinterpret_cast<FileSum*>(table + layout.files_at);
  const u32 process = static_cast<u32>(raw_syscall(SYS_getpid));
  const auto key_at = [&](u32 line) { return file_key(process, path, static_cast<u32>(call), line); };
  auto found = entry_of(sums, layout.files, key_at(frame), &FileSum::key, frame == 0 || !is_nearly_full(table));
  // No room for one more line: the file's calls are still told.
  if (!found.entry && frame != 0) found = entry_of(sums, layout.files, key_at(0), &FileSum::key);
  const auto [sum, is_new] = found;
  if (!sum) {
    head(table).lost_files.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (is_new) head(table).files_used.fetch_add(1, std::memory_order_relaxed);
  sum->bytes.fetch_add(bytes, std::memory_order_relaxed);
  add_to(*sum, static_cast<u64>(length));
}

void add_wait(u32 frame, WaitFor what, Nanos length) {
  char* const table = memory.load(std::memory_order_acquire);
  if (!table) return;
  auto* sums = reinterpret_cast<WaitSum*>(table + layout.waits_at);
  const u32 thread = own_thread_id();
  const auto [sum, is_new] =
      entry_of(sums, layout.waits, wait_key(thread, frame, static_cast<u32>(what)), &WaitSum::key);
  if (!sum) {
    head(table).lost_waits.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (is_new) sum->process.store(static_cast<u32>(raw_syscall(SYS_getpid)), std::memory_order_relaxed);
  add_to(*sum, static_cast<u64>(length));
}

u32 path_number(const char* path, u64 length) {
  char* const table = memory.load(std::memory_order_acquire);
  if (!table || length == 0) return 0;
  const bool is_file = path[0] == '/';  // "(pipe)" and the like are few
  if (const u32 number = number_of(table, path, length, !is_file || !is_nearly_full(table))) return number;
  char folder[512];
  while (length > 0 && path[length - 1] != '/') --length;
  if (length == 0 || length >= sizeof folder) return number_of(table, "(elsewhere)", 11, true);
  std::memcpy(folder, path, length);
  folder[length] = '*';
  const u32 number = number_of(table, folder, length + 1, true);
  return number ? number : number_of(table, "(elsewhere)", 11, true);
}

}  // namespace gputrace::host
