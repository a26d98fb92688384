// One kernel under way, on the driver's worker thread. It asks again and again, without waiting, whether the other ranks have
// come; bytes move as soon as they have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "simgpu/driver/launch/kernel_work.h"
#include "simgpu/libs/nccl/communicator.h"
#include "simgpu/libs/nccl/operation.h"

namespace simlibs {

struct Plan {
  Communicator communicator;
  std::vector<Operation> operations;
  std::optional<uint64_t>
      ticket;  // its place among the communicator's launches; none: of a graph, it comes when it is replayed
};

class Execution {
 public:
  Execution(const Plan& plan, const simgpu::KernelStart& start)
      : plan_(plan), comm_(*plan.communicator), start_(start) {}
  bool ended(uint64_t* end);

 private:
  // A message between two ranks.
  struct Message {
    const Operation* operation = nullptr;
    uint64_t position = 0;
    bool posted = false, done = false;
  };
  bool may_begin();
  bool at_end(uint64_t* end);
  bool step();  // the current operation, or the messages from it on: true when they are done
  bool collective(const Operation& operation);
  bool all_published(const Operation& operation, uint64_t* last_start);
  void take_results(const Operation& operation);
  void reduce(const Operation& operation, size_t offset_bytes, void* receive, size_t count);
  void gather_messages();
  bool messages();
  bool send(Message& message);
  bool receive(Message& message);
  void look_after_others();
  void fail(ncclResult_t error);
  uint64_t bytes_time(uint64_t bytes) const;

  const Plan& plan_;
  ncclComm& comm_;
  simgpu::KernelStart start_;
  bool begun_ = false, posted_ = false;
  uint64_t position_ = 0;  // of the collective
  uint64_t now_ = 0;       // how far the kernel is, in device time
  size_t at_ = 0;          // operation
  size_t after_ = 0;       // the first one behind the messages
  std::vector<Message> messages_;
  uint64_t met_ = 0, sent_bytes_ = 0, received_bytes_ = 0;
};

}  // namespace simlibs
