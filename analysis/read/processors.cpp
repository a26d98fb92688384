#include "analysis/read/processors.h"

#include <atomic>
#include <thread>

namespace gputrace {
namespace {

std::atomic<unsigned> being_read{0};

}  // namespace

ProcessIsRead::ProcessIsRead() { being_read.fetch_add(1, std::memory_order_relaxed); }
ProcessIsRead::~ProcessIsRead() { being_read.fetch_sub(1, std::memory_order_relaxed); }

bool processors_are_busy() {
  static const unsigned processors = std::thread::hardware_concurrency();  // 0: not known
  return processors != 0 && being_read.load(std::memory_order_relaxed) >= processors;
}

}  // namespace gputrace
