// One rank of `ranks=N`, `rank=R`: collectives alone, in a group, point to point, on a split communicator.
#include <nccl.h>

#include <cstring>

#include "tests/standins/libs_check.h"

namespace {

int word(int count, char** words, const char* name, int otherwise) {
  const std::size_t length = std::strlen(name);
  for (int i = 1; i < count; ++i) {
    if (std::strncmp(words[i], name, length) == 0 && words[i][length] == '=') return std::atoi(words[i] + length + 1);
  }
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = word(argc, argv, "ranks", 1), rank = word(argc, argv, "rank", 0),
            rounds = word(argc, argv, "rounds", 3);
  const CUstream driver_stream = begin_program();
  const auto stream = reinterpret_cast<cudaStream_t>(driver_stream);
  ncclUniqueId id;
  MUST(ncclGetUniqueId(&id));
  ncclComm_t world = nullptr, half = nullptr;
  MUST(ncclCommInitRank(&world, ranks, id, rank));
  MUST(ncclCommSplit(world, 5, rank, &half, nullptr));
  for (int i = 0; i < rounds; ++i) MUST(ncclAllReduce(nullptr, nullptr, 1 << 20, ncclFloat, ncclSum, world, stream));
  MUST(ncclAllGather(nullptr, nullptr, 4096, ncclHalf, half, stream));
  MUST(ncclBcast(nullptr, 1000, ncclInt8, 0, world, stream));
  // Three of one communicator in a group: one kernel.
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(nullptr, nullptr, 1000, ncclDouble, ncclSum, world, stream));
  MUST(ncclAllReduce(nullptr, nullptr, 3000, ncclDouble, ncclSum, world, stream));
  MUST(ncclReduceScatter(nullptr, nullptr, 500, ncclFloat, ncclSum, world, stream));
  MUST(ncclGroupEnd());
  MUST(ncclGroupStart());
  MUST(ncclSend(nullptr, 2048, ncclFloat, (rank + 1) % ranks, world, stream));
  MUST(ncclRecv(nullptr, 2048, ncclFloat, (rank + ranks - 1) % ranks, world, stream));
  MUST(ncclGroupEnd());
  MUST(cuStreamSynchronize(driver_stream));
  MUST(ncclCommDestroy(half));
  MUST(ncclCommDestroy(world));
  return end_program(driver_stream);
}
