#include "ringbuf/segment_create.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>

#include "base/mapped_memory.h"
#include "base/raw_syscall.h"
#include "ringbuf/host_table.h"

namespace gputrace {
namespace {

constexpr u64 kPage = 4096;
constexpr u64 kReserveStep =
    1u << 20;  // the reservation itself can trigger the OOM killer: small steps give it little to kill for
constexpr u32 kAllowSealing = 2, kCloseOnExec = 1;
constexpr int kAddSeals = 1033, kSealSeal = 1, kSealShrink = 2, kSealGrow = 4;
constexpr u64 kMaxDescriptor = 1000;  // higher ones cost the process a larger descriptor table

// Blocks small enough that a thousand threads can hold one each, large enough that borders cost nothing.
u32 choose_block_size(Bytes budget) {
  u32 size = 16u << 10;
  while (size < (64u << 10) && budget / size > 2048) size <<= 1;
  if (budget < (1u << 20)) size = 8u << 10;
  return size;
}

int reserve_pages(int fd, u64 size) {
  for (u64 done = 0; done < size;) {
    const u64 step = size - done < kReserveStep ? size - done : kReserveStep;
    const long result = raw_syscall(SYS_fallocate, fd, 0, static_cast<long>(done), static_cast<long>(step));
    if (result == -EINTR) continue;
    if (result < 0) return static_cast<int>(-result);
    done += step;
  }
  return 0;
}

void prefault(char* base, u64 size) {
  if (populate_memory(base, size)) return;
  for (u64 at = 0; at < size; at += kPage) *const_cast<volatile char*>(base + at) = 0;
}

// RLIMIT_FSIZE holds for a memfd too, and what exceeds it is a signal that ends the program.
bool file_may_be(u64 size) {
  rlimit limit{};
  return raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, raw_pointer(&limit)) < 0 || limit.rlim_cur >= size;
}

int make_sealed_file(u64 size, int& error) {
  if (!file_may_be(size)) {
    error = EFBIG;
    return -1;
  }
  const long made = raw_syscall(SYS_memfd_create, raw_pointer("gputrace"), kAllowSealing | kCloseOnExec);
  if (made < 0) {
    error = static_cast<int>(-made);
    return -1;
  }
  const int fd = move_descriptor_high(static_cast<int>(made));
  error = reserve_pages(fd, size);
  if (!error) {
    const long sealed = raw_syscall(SYS_fcntl, fd, kAddSeals, kSealShrink | kSealGrow | kSealSeal);
    if (sealed < 0) error = static_cast<int>(-sealed);
  }
  if (!error) return fd;
  raw_syscall(SYS_close, fd);
  return -1;
}

}  // namespace

int move_descriptor_high(int fd) {
  rlimit limit{};
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw_pointer(&limit)) < 0) return fd;
  const u64 top = limit.rlim_cur < kMaxDescriptor ? limit.rlim_cur : kMaxDescriptor;
  for (u64 below = 8; below < top; below = below * 2) {
    const long moved = raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, static_cast<long>(top - below));
    if (moved < 0) continue;
    raw_syscall(SYS_close, fd);
    return static_cast<int>(moved);
  }
  return fd;
}

u64 segment_size(Bytes budget) { return budget & ~(kPage - 1); }

Bytes host_table_size(Bytes budget) {
  const Bytes part = (budget / 8) & ~(kPage - 1);
  return part < kLeastHostTable ? kLeastHostTable : part > kMostHostTable ? kMostHostTable : part;
}

int reserve_file(int fd, u64 size) { return file_may_be(size) ? reserve_pages(fd, size) : EFBIG; }

bool plan_segment(const SegmentRequest& request, SegmentHeader& header) {
  header = {};
  const u64 size = segment_size(request.budget);
  if (size < kMinSegment) return false;
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.header_size = sizeof(SegmentHeader);
  header.segment_size = size;
  header.control_offset = align_up(sizeof(SegmentHeader), 64);
  header.text_offset = align_up(header.control_offset + sizeof(SegmentControl), 64);
  header.schema_size = request.schema_size;
  header.info_size = request.info_size;
  header.slots_offset = align_up(header.text_offset + request.schema_size + request.info_size, 64);
  header.block_size = choose_block_size(size);
  header.slot_size = sizeof(ThreadSlot);
  header.host_table_size = request.host_table & ~(kPage - 1);
  if (header.host_table_size > size / 2) return false;
  header.host_table_offset = header.host_table_size ? size - header.host_table_size : 0;
  const u64 slots = size / header.block_size;
  header.slot_count = static_cast<u32>(slots < kMinSlots ? kMinSlots : slots > kMaxSlots ? kMaxSlots : slots);
  header.block_states_offset = align_up(header.slots_offset + u64{header.slot_count} * sizeof(ThreadSlot), 64);
  // One state word and one block each, blocks on page borders.
  const u64 before = size - header.host_table_size;
  const u64 left = before > header.block_states_offset + kPage ? before - header.block_states_offset - kPage : 0;
  header.block_count = static_cast<u32>(left / (header.block_size + sizeof(u64)));
  header.blocks_offset = align_up(header.block_states_offset + u64{header.block_count} * sizeof(u64), kPage);
  header.random_id = request.random_id;
  header.pid_namespace = request.pid_namespace;
  header.start_time = request.start_time;
  header.pid = request.pid;
  header.clock = request.clock;
  header.on_full = request.on_full;
  return header.block_count > kReservedBlocks + kFirstSharedBlock &&
         header.blocks_offset + u64{header.block_count} * header.block_size <= before;
}

void begin_segment(char* base, const SegmentHeader& header, const SegmentRequest& request) {
  std::memcpy(base + header.text_offset, request.schema, request.schema_size);
  std::memcpy(base + header.text_offset + request.schema_size, request.info, request.info_size);
  std::memcpy(base, &header, sizeof header);
  auto* slots = reinterpret_cast<ThreadSlot*>(base + header.slots_offset);
  for (u32 i = 0; i < header.slot_count; ++i) slots[i].current_block.store(kNoBlock, std::memory_order_relaxed);
  auto* control = reinterpret_cast<SegmentControl*>(base + header.control_offset);
  control->window_end.store(~0ull, std::memory_order_relaxed);
}

int create_segment(const SegmentRequest& request, CreatedSegment& created) {
  SegmentHeader plan;
  if (!plan_segment(request, plan)) return ENOMEM;
  int error = 0;
  const int fd = request.file >= 0 ? request.file : make_sealed_file(plan.segment_size, error);
  if (fd < 0) return error;
  const long mapped =
      raw_syscall(SYS_mmap, 0, static_cast<long>(plan.segment_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (raw_failed(mapped)) {
    if (fd != request.file) raw_syscall(SYS_close, fd);
    return static_cast<int>(-mapped);
  }
  char* base = reinterpret_cast<char*>(mapped);
  prefault(base, plan.segment_size);
  plan.anchor = take_anchor(request.clock);
  begin_segment(base, plan, request);
  created = {fd, base, reinterpret_cast<SegmentHeader*>(base)};
  return 0;
}

}  // namespace gputrace
