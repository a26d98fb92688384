// One rank of `ranks=N`, `rank=R`, which meets the others by the file `id=PATH`: collectives alone, in a group, point to
// point, on a split communicator. With `late=US` rank R begins each all-reduce R times that long after the others.
#include <nccl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/programs/libs/libs_check.h"

namespace {

std::string word(int count, char** words, const char* name, const char* otherwise) {
  const std::size_t length = std::strlen(name);
  for (int i = 1; i < count; ++i) {
    if (std::strncmp(words[i], name, length) == 0 && words[i][length] == '=') return words[i] + length + 1;
  }
  return otherwise;
}

// Rank 0 writes it, whole at once.
ncclUniqueId shared_id(int rank, int ranks, const std::string& path) {
  ncclUniqueId id{};
  if (rank == 0) {
    MUST(ncclGetUniqueId(&id));
    if (ranks > 1) {
      std::ofstream(path + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
      MUST(std::rename((path + ".new").c_str(), path.c_str()));
    }
    return id;
  }
  while (!std::ifstream(path, std::ios::binary).read(id.internal, sizeof id.internal)) usleep(1000);
  return id;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](const char* name, const char* otherwise) {
    return std::stoi(word(argc, argv, name, otherwise));
  };
  const int ranks = number("ranks", "1"), rank = number("rank", "0"), rounds = number("rounds", "3");
  const int late = number("late", "0");
  const CUstream driver_stream = begin_program();
  const auto stream = reinterpret_cast<cudaStream_t>(driver_stream);
  CUdeviceptr memory = 0;
  MUST(cuMemAlloc(&memory, 16 << 20));
  auto* const from = reinterpret_cast<void*>(memory);
  auto* const to = reinterpret_cast<void*>(memory + (8 << 20));
  ncclComm_t world = nullptr, half = nullptr;
  MUST(ncclCommInitRank(&world, ranks, shared_id(rank, ranks, word(argc, argv, "id", "")), rank));
  MUST(ncclCommSplit(world, 5, rank, &half, nullptr));
  for (int i = 0; i < rounds; ++i) {
    usleep(static_cast<useconds_t>(late * rank));
    MUST(ncclAllReduce(from, to, 1 << 20, ncclFloat, ncclSum, world, stream));
    MUST(cuStreamSynchronize(driver_stream));
  }
  MUST(ncclAllGather(from, to, 4096, ncclHalf, half, stream));
  MUST(ncclBcast(from, 1000, ncclInt8, 0, world, stream));
  // Three of one communicator in a group: one kernel.
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(from, to, 1000, ncclDouble, ncclSum, world, stream));
  MUST(ncclAllReduce(from, to, 3000, ncclDouble, ncclSum, world, stream));
  MUST(ncclReduceScatter(from, to, 500, ncclFloat, ncclSum, world, stream));
  MUST(ncclGroupEnd());
  MUST(ncclGroupStart());
  MUST(ncclSend(from, 2048, ncclFloat, (rank + 1) % ranks, world, stream));
  MUST(ncclRecv(to, 2048, ncclFloat, (rank + ranks - 1) % ranks, world, stream));
  MUST(ncclGroupEnd());
  MUST(cuStreamSynchronize(driver_stream));
  MUST(ncclCommDestroy(half));
  MUST(ncclCommDestroy(world));
  return end_program(driver_stream);
}
