#include "interpose/settings/environment.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/raw_syscall.h"

// Where the stack of the program began, as the loader keeps it: the count of arguments, these, nullptr, the variables.
// Weak: glibc alone has it.
extern "C" __attribute__((weak)) void* __libc_stack_end;

namespace gputrace {
namespace {

constexpr char kPrefix[] = "GPUTRACE";
constexpr const char* kOthers[] = {"CUDA_HOME", "CUDA_INJECTION64_PATH"};

// NAME=VALUE\0NAME=VALUE\0\0
template <u32 kCapacity>
class Copies {
 public:
  void add(const char* entry) {
    const u32 size = static_cast<u32>(std::strlen(entry)) + 1;
    if (used_ + size + 1 > kCapacity) return;
    std::memcpy(text_ + used_, entry, size);
    used_ += size;
  }
  const char* begin() const { return text_; }
  const char* value(const char* name, std::size_t length) const {
    for (const char* entry = text_; *entry; entry += std::strlen(entry) + 1) {
      if (std::strncmp(entry, name, length) == 0 && entry[length] == '=') return entry + length + 1;
    }
    return nullptr;
  }

 private:
  char text_[kCapacity]{};
  u32 used_ = 0;
};
constinit Copies<8192> copied{};           // ours
constinit Copies<4096> others{};           // of the toolkit
constinit std::atomic<u32> copy_state{0};  // 0 not yet, 1 being made, 2 there

// `environ` is not there yet for a call from .preinit_array.
char* const* initial_variables() {
  if (environ || !&__libc_stack_end || !__libc_stack_end) return environ;
  auto* const words = static_cast<char**>(__libc_stack_end);
  const auto arguments = reinterpret_cast<u64>(words[0]);
  return words + 1 + arguments + 1;
}

const char* value_in(char* const* variables, const char* name) {
  const std::size_t length = std::strlen(name);
  for (; variables && *variables; ++variables) {
    if (std::strncmp(*variables, name, length) == 0 && (*variables)[length] == '=') return *variables + length + 1;
  }
  return nullptr;
}

// Copies memory of this process that may be gone: as much as is there, 0 where nothing is.
u64 copy_from(const void* address, void* out, u64 size) {
  const iovec to{out, size};
  const iovec from{const_cast<void*>(address), size};
  const long copied =
      raw_syscall(SYS_process_vm_readv, raw_syscall(SYS_getpid), raw_pointer(&to), 1, raw_pointer(&from), 1, 0);
  return copied > 0 ? static_cast<u64>(copied) : 0;
}

// A text that may end anywhere; its size with the 0, or 0: it is not there, or longer than `capacity`.
u64 copy_text(const char* address, char* out, u64 capacity) {
  constexpr u64 kPage = 4096;
  u64 size = 0;
  while (size < capacity) {
    // Up to the end of a page: the next one may not be there.
    u64 piece = kPage - (reinterpret_cast<u64>(address) + size) % kPage;
    if (piece > capacity - size) piece = capacity - size;
    const u64 got = copy_from(address + size, out + size, piece);
    if (got == 0) return 0;
    if (const void* end = std::memchr(out + size, 0, got))
      return static_cast<u64>(static_cast<const char*>(end) - out) + 1;
    size += got;
  }
  return 0;
}

i32 number_of(const char* text) {
  if (!text || *text < '0' || *text > '9') return -1;
  i64 value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    value = value * 10 + (*text - '0');
    if (value > 0x7fffffff) return -1;
  }
  return *text ? -1 : static_cast<i32>(value);
}

i32 first_number(char* const* variables, const char* const* names, u32 count) {
  for (u32 i = 0; i < count; ++i) {
    const i32 value = number_of(value_in(variables, names[i]));
    if (value >= 0) return value;
  }
  return -1;
}

}  // namespace

void copy_environment() {
  u32 none = 0;
  if (!copy_state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
  char* const* variables = initial_variables();
  for (; variables && *variables; ++variables) {
    const char* entry = *variables;
    if (std::strncmp(entry, kPrefix, sizeof kPrefix - 1) == 0) copied.add(entry);
    for (const char* name : kOthers) {
      const std::size_t length = std::strlen(name);
      if (std::strncmp(entry, name, length) == 0 && entry[length] == '=') others.add(entry);
    }
  }
  copy_state.store(2, std::memory_order_release);
}

const char* copied_variable(const char* name) {
  if (copy_state.load(std::memory_order_acquire) != 2) return nullptr;
  const std::size_t length = std::strlen(name);
  const char* value = copied.value(name, length);
  return value ? value : others.value(name, length);
}

const char* next_copied(const char* entry) {
  if (copy_state.load(std::memory_order_acquire) != 2) return nullptr;
  const char* next = entry ? entry + std::strlen(entry) + 1 : copied.begin();
  return *next ? next : nullptr;
}

void visit_copied_variables(void (*visit)(const char*, u32, const char*, void*), void* data) {
  if (copy_state.load(std::memory_order_acquire) != 2) return;
  for (const char* entry = copied.begin(); *entry; entry += std::strlen(entry) + 1) {
    const char* equals = std::strchr(entry, '=');
    if (equals) visit(entry, static_cast<u32>(equals - entry), equals + 1, data);
  }
}

char** read_environment(char* memory, u32 capacity) {
  char* const* const variables = __atomic_load_n(&environ, __ATOMIC_RELAXED);
  const u32 most = capacity / 8 / sizeof(char*);  // an eighth for the list
  char** const list = reinterpret_cast<char**>(memory);
  char* text = memory + (most + 1) * sizeof(char*);
  char* const end = memory + capacity;
  u32 count = 0;
  for (u32 i = 0; variables && i < most; ++i) {
    const char* entry = nullptr;
    if (copy_from(variables + i, &entry, sizeof entry) != sizeof entry) {
      if (i == 0) return nullptr;
      break;
    }
    if (!entry) break;
    const u64 size = copy_text(entry, text, static_cast<u64>(end - text));
    if (!size) continue;
    list[count++] = text;
    text += size;
  }
  list[count] = nullptr;
  return list;
}

Rank read_rank(char* const* variables) {
  static constexpr const char* kRanks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                           "MV2_COMM_WORLD_RANK"};
  static constexpr const char* kLocalRanks[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                                "SLURM_LOCALID"};
  Rank rank;
  rank.rank = first_number(variables, kRanks, sizeof kRanks / sizeof *kRanks);
  if (rank.rank < 0 && number_of(value_in(variables, "SLURM_NTASKS")) > 1)
    rank.rank = number_of(value_in(variables, "SLURM_PROCID"));
  rank.local_rank = first_number(variables, kLocalRanks, sizeof kLocalRanks / sizeof *kLocalRanks);
  return rank;
}

}  // namespace gputrace
