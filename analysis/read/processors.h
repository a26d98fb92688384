// How many processes of a run are being read just now, against the processors that there are: threads behind each of them help
// only where a processor has nothing else to do. Where all are busy they cost: what one writes another one reads from a cache that
// is not its own, and each change of hands wakes a thread.
//   · Any thread.
#pragma once

namespace gputrace {

// While it exists a process is being read.
class ProcessIsRead {
 public:
  ProcessIsRead();
  ~ProcessIsRead();
  ProcessIsRead(const ProcessIsRead&) = delete;
  ProcessIsRead& operator=(const ProcessIsRead&) = delete;
};

// As many processes are being read as there are processors for.
bool processors_are_busy();

}  // namespace gputrace
