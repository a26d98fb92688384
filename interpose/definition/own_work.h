// What we do ourselves on a thread of the program once a call of its has returned: questions to the driver at a kernel's
// first launch, the nodes of a graph, the code of a module. It takes microseconds to milliseconds, the program waits for
// it, and it is not the program's: so it is recorded, and a gap of a device that lies in it is the profiler's.
#pragma once

#include "interpose/hot/traced.h"

namespace gputrace {

// From here to its end, on the calling thread. `call` is over.
class OwnWorkScope {
 public:
  OwnWorkScope(const FinishedCall& call, OwnWorkKind kind) : work_(call.nameless()), kind_(kind) {
    work_.begin = record_ticks();
  }
  ~OwnWorkScope() {
    work_.end = record_ticks();
    OwnWork record{};
    record.kind = static_cast<u32>(kind_);
    emit(work_, record);
  }
  OwnWorkScope(const OwnWorkScope&) = delete;
  OwnWorkScope& operator=(const OwnWorkScope&) = delete;

 private:
  FinishedCall work_;
  const OwnWorkKind kind_;
};

}  // namespace gputrace
