// While one of these lives on a thread, calls of that thread are not the program's: they pass through unrecorded.
// Around everything that may make the vendor's libraries call the driver.
#pragma once

#include "ringbuf/producer.h"

namespace gputrace {

class UntracedScope {
 public:
  UntracedScope() : generation_(thread_state.generation), busy_(thread_state.busy) {
    thread_state.busy = kUntraced;
    compiler_barrier();
    thread_state.generation = ~0ull;
    compiler_barrier();
  }
  ~UntracedScope() {
    compiler_barrier();
    thread_state.generation = generation_;
    compiler_barrier();
    thread_state.busy = busy_;
  }
  UntracedScope(const UntracedScope&) = delete;
  UntracedScope& operator=(const UntracedScope&) = delete;

 private:
  u64 generation_;
  u64 busy_;
};

}  // namespace gputrace
