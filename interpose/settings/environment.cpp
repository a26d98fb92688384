#include "interpose/settings/environment.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

namespace gputrace {
namespace {

constexpr u32 kCapacity = 8192;
constexpr char kPrefix[] = "GPUTRACE";

constinit char copied[kCapacity]{};        // NAME=VALUE\0NAME=VALUE\0\0
constinit std::atomic<u32> copy_state{0};  // 0 not yet, 1 being made, 2 there

const char* variable_now(const char* name) {
  const std::size_t length = std::strlen(name);
  for (char* const* entry = environ; entry && *entry; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
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

i32 first_number(const char* const* names, u32 count) {
  for (u32 i = 0; i < count; ++i) {
    const i32 value = number_of(variable_now(names[i]));
    if (value >= 0) return value;
  }
  return -1;
}

}  // namespace

void copy_environment(char* const* variables) {
  u32 none = 0;
  if (!copy_state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
  u32 used = 0;
  for (; variables && *variables; ++variables) {
    if (std::strncmp(*variables, kPrefix, sizeof kPrefix - 1) != 0) continue;
    const u32 size = static_cast<u32>(std::strlen(*variables)) + 1;
    if (used + size + 1 > kCapacity) continue;
    std::memcpy(copied + used, *variables, size);
    used += size;
  }
  copy_state.store(2, std::memory_order_release);
}

const char* copied_variable(const char* name) {
  if (copy_state.load(std::memory_order_acquire) != 2) return nullptr;
  const std::size_t length = std::strlen(name);
  for (const char* entry = copied; *entry; entry += std::strlen(entry) + 1) {
    if (std::strncmp(entry, name, length) == 0 && entry[length] == '=') return entry + length + 1;
  }
  return nullptr;
}

void visit_copied_variables(void (*visit)(const char*, u32, const char*, void*), void* data) {
  if (copy_state.load(std::memory_order_acquire) != 2) return;
  for (const char* entry = copied; *entry; entry += std::strlen(entry) + 1) {
    const char* equals = std::strchr(entry, '=');
    if (equals) visit(entry, static_cast<u32>(equals - entry), equals + 1, data);
  }
}

Rank read_rank() {
  static constexpr const char* kRanks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                           "MV2_COMM_WORLD_RANK"};
  static constexpr const char* kLocalRanks[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                                "SLURM_LOCALID"};
  Rank rank;
  rank.rank = first_number(kRanks, sizeof kRanks / sizeof *kRanks);
  if (rank.rank < 0 && number_of(variable_now("SLURM_NTASKS")) > 1) rank.rank = number_of(variable_now("SLURM_PROCID"));
  rank.local_rank = first_number(kLocalRanks, sizeof kLocalRanks / sizeof *kLocalRanks);
  return rank;
}

}  // namespace gputrace
