#include "writer/sample/other_threads.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "writer/host.h"

namespace gputrace {
namespace {

constexpr Nanos kLookForBusyEvery = 250'000'000;
constexpr Nanos kMoreArriveWithin = 1'000'000'000;  // behind one that came: so long the list is read at each look
constexpr u64 kNumberInThread = 0x2d0;              // struct pthread: its tid, in glibc for x86-64

// How long it has run, ns; 0: it is gone, or the kernel does not count it.
u64 time_of(i32 process, i32 tid) {
  const std::string path = "/proc/" + std::to_string(process) + "/task/" + std::to_string(tid) + "/schedstat";
  unsigned long long ran = 0;
  return std::sscanf(read_small_file(path, 128).c_str(), "%llu", &ran) == 1 ? ran : 0;
}

bool is_calling(const std::vector<OtherThreads::Calling>& calling, i32 tid) {
  return std::any_of(calling.begin(), calling.end(), [tid](const auto& each) { return each.tid == tid; });
}

}  // namespace

i32 number_of_thread(ProcessMemory& process, u64 id) {
  i32 number = 0;
  return process.read(id + kNumberInThread, &number, sizeof number) ? number : 0;
}

void OtherThreads::learn_numbers(const std::vector<PythonThread>& all, ProcessMemory& process,
                                 const std::vector<Calling>& calling) {
  for (const PythonThread& thread : all) {
    const i32 tid = number_of_thread(process, thread.id);  // each time: a new one may lie where another has ended
    if (tid == 0) continue;
    numbers_[thread.id] = tid;
    const auto known =
        std::find_if(calling.begin(), calling.end(), [&](const Calling& each) { return each.state == thread.state; });
    is_proven_ = is_proven_ || (known != calling.end() && known->tid == tid);
  }
}

void OtherThreads::find_busy(i32 process, const std::vector<Calling>& calling) {
  std::unordered_map<i32, u64> ran;
  std::vector<Busy> found;
  for (const auto& [id, number] : numbers_) {
    const i32 tid = number;
    if (is_calling(calling, tid)) continue;
    const u64 now = time_of(process, tid);
    if (now == 0) continue;
    ran[tid] = now;
    const auto before = ran_.find(tid);
    const u64 lately = before == ran_.end() ? now : now - std::min(now, before->second);  // a new one: all that it has
    if (lately == 0) continue;
    const auto same = std::find_if(busy_.begin(), busy_.end(), [&](const Busy& each) { return each.tid == tid; });
    found.push_back({tid, lately, same == busy_.end() ? 0 : same->looked});
  }
  std::sort(found.begin(), found.end(), [](const Busy& a, const Busy& b) { return a.lately > b.lately; });
  if (found.size() > kMostAtOnce) found.resize(kMostAtOnce);
  busy_ = std::move(found);
  // Its place may be another thread's by and by.
  std::erase_if(numbers_, [&](const auto& each) { return !ran.contains(each.second); });
  ran_ = std::move(ran);
}

std::vector<PythonThread> OtherThreads::arrivals(const std::vector<PythonThread>& all,
                                                 const std::vector<Calling>& calling) {
  std::vector<PythonThread> arrived;
  std::unordered_set<i32> listed;
  for (const PythonThread& thread : all) {
    const auto number = numbers_.find(thread.id);
    if (number == numbers_.end()) continue;
    listed.insert(number->second);
    if (!listed_.contains(number->second) && !is_calling(calling, number->second)) arrived.push_back(thread);
  }
  listed_ = std::move(listed);
  return arrived;
}

std::optional<OtherThreads::Turn> OtherThreads::next_busy(const std::vector<PythonThread>& all) {
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    Busy& each = busy_[turn_++ % busy_.size()];
    const auto at = std::find_if(all.begin(), all.end(), [&](const PythonThread& thread) {
      const auto number = numbers_.find(thread.id);
      return number != numbers_.end() && number->second == each.tid;
    });
    if (at != all.end()) return Turn{*at, each.tid, each.looked};
  }
  return {};
}

std::optional<OtherThreads::Turn> OtherThreads::next(const OwnInterpreter& interpreter, ProcessMemory& process,
                                                     u64 runtime, const std::vector<Calling>& calling) {
  const Nanos now = monotonic_nanos();
  const bool counts = now >= next_count_;
  if (!counts && busy_.empty() && now >= expects_arrivals_until_) return {};
  const std::vector<PythonThread> all = interpreter.threads(process, runtime, kMostThreads);
  learn_numbers(all, process, calling);
  if (counts) find_busy(process.process(), calling), next_count_ = now + kLookForBusyEvery;
  const std::vector<PythonThread> arrived = arrivals(all, calling);
  if (!arrived.empty()) expects_arrivals_until_ = now + kMoreArriveWithin;
  if (!is_proven_) return {};
  prefers_arrivals_ = !prefers_arrivals_;
  if (arrived.empty() || !prefers_arrivals_) {
    if (const auto turn = next_busy(all)) return turn;
  }
  if (arrived.empty()) return {};
  const PythonThread& thread = arrived[static_cast<u64>(now) % arrived.size()];
  arrival_looked_ = 0;
  return Turn{thread, numbers_.at(thread.id), arrival_looked_};
}

}  // namespace gputrace
