// Threads: processes and their threads as a tree, what each used of the processors, and what it called.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "analysis/reports/section_report.h"
#include "analysis/run/input_ops.h"
#include "trace/file.h"

namespace gputrace {
namespace {

bool begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

Value role_of(const ProcessTrace& process, const HostThread& thread, bool is_loader) {
  if (thread.process == 0 && thread.tid == process.who.pid) return std::string("main");
  if (begins(thread.name, "pt_autograd")) return std::string("backward");
  if (is_loader || begins(thread.name, "pt_data_")) return std::string("loader");
  return {};
}

// What the process's records say of one thread number.
struct Called {
  u64 calls = 0, wait_ns = 0, samples = 0;
  std::string name;
};

std::map<i32, Called> calls_by_thread(const ProcessTrace& process) {
  std::map<i32, Called> by_tid;
  std::vector<u64> samples(process.threads.size());
  for (const SampledThread& series : process.samples.threads) {
    if (series.process == 0 && series.thread < samples.size()) samples[series.thread] += series.points.size();
    if (series.tid != 0) by_tid[series.tid].samples += series.points.size();
  }
  for (std::size_t i = 0; i < process.threads.size(); ++i) {
    const ThreadFacts& thread = process.threads[i];
    if (thread.process_wide || thread.tid == 0 || thread.slot == kSidecarSlot) continue;
    Called& called = by_tid[thread.tid];
    called.calls += thread.calls, called.wait_ns += thread.wait_ns;
    called.name = thread.name;
    called.samples += samples[i];
  }
  return by_tid;
}

class Tree {
 public:
  Tree(const LoadedRun& run, const ProcessTrace& process, Table& table)
      : process_(process), table_(table), called_(calls_by_thread(process)), loaders_(loader_processes(process)) {
    for (const ProcessTrace& each : run.processes) traced_.insert(each.who.pid);
    for (const HostThread& thread : process.samples.host_threads) {
      if (thread.process != 0 && traced_.count(thread.process)) continue;  // has a trace of its own
      auto& threads = of_[thread.process];
      if (threads.empty() && thread.process != 0) children_[thread.parent].push_back(thread.process);
      threads.push_back(&thread);
      if (thread.process == 0) ++given_[thread.tid];
    }
  }

  void add_all() {
    add_threads(0);
    for (const auto& [tid, called] : called_) {
      if (given_.count(tid) || called.calls == 0) continue;
      table_.rows.push_back({pid(0),
                             static_cast<i64>(tid),
                             called.name,
                             {},
                             {},
                             {},
                             number(called.wait_ns),
                             number(called.calls),
                             {},
                             number(called.samples),
                             {},
                             {}});
    }
    for (const i32 child : children_of(process_.who.pid)) add_with_children(child);
    // Those whose parent was never looked at.
    for (const auto& [child, threads] : of_) {
      if (child != 0) add_with_children(child);
    }
  }

 private:
  i64 pid(i32 process) const { return process ? process : process_.who.pid; }

  // In the order of their numbers.
  std::vector<i32> children_of(i32 parent) const {
    const auto found = children_.find(parent);
    std::vector<i32> children = found == children_.end() ? std::vector<i32>{} : found->second;
    std::sort(children.begin(), children.end());
    return children;
  }

  // A trace may say that each made the next, however many there are.
  void add_with_children(i32 process) {
    std::vector<i32> next{process};
    while (!next.empty()) {
      const i32 one = next.back();
      next.pop_back();
      if (done_.count(one)) continue;
      add_threads(one);
      const std::vector<i32> children = children_of(one);
      next.insert(next.end(), children.rbegin(), children.rend());
    }
  }

  void add_threads(i32 process) {
    done_.insert(process);
    auto& threads = of_[process];
    std::stable_sort(threads.begin(), threads.end(), [&](const HostThread* a, const HostThread* b) {
      const bool first = a->tid == pid(process), other = b->tid == pid(process);
      return first != other ? first : a->cpu_ns > b->cpu_ns;
    });
    for (const HostThread* thread : threads) add(*thread);
  }

  void add(const HostThread& thread) {
    enum { Pid, Tid, Name, Role, Parent, Cpu, Wait, Calls, Ready, Samples, Begin, Seen, Cells };
    const bool is_first = thread.tid == pid(thread.process);
    const auto loader = loaders_.find(thread.process);
    const bool is_loader = thread.process != 0 && loader != loaders_.end();
    Row row(Cells);
    row[Pid] = pid(thread.process);
    row[Tid] = static_cast<i64>(thread.tid);
    row[Name] = thread.name;
    row[Role] = role_of(process_, thread, is_loader);
    if (!is_first) row[Parent] = pid(thread.process);
    if (is_first && thread.process != 0) row[Parent] = static_cast<i64>(thread.parent);
    row[Cpu] = number(thread.cpu_ns);
    if (thread.ready_told) row[Ready] = number(thread.ready_ns);
    row[Begin] = number(thread.began);
    row[Seen] = number(thread.seen);
    if (thread.process != 0) {  // it made no call, or it would have a trace of its own
      row[Wait] = row[Calls] = number(u64{0});
      if (is_first && is_loader) row[Samples] = number(loader->second);
    } else if (given_[thread.tid] == 1) {  // of several with one number nobody knows whose calls they are
      const auto called = called_.find(thread.tid);
      const Called none, &found = called == called_.end() ? none : called->second;
      row[Wait] = number(found.wait_ns);
      row[Calls] = number(found.calls);
      row[Samples] = number(found.samples);
    }
    table_.rows.push_back(std::move(row));
  }

  const ProcessTrace& process_;
  Table& table_;
  const std::map<i32, Called> called_;
  const std::map<i32, u64> loaders_;
  std::set<i32> traced_, done_;
  std::map<i32, std::vector<const HostThread*>> of_;
  std::map<i32, std::vector<i32>> children_;  // by parent: processes
  std::map<i32, u64> given_;                  // how many threads had a number
};

void fill_threads(const LoadedRun& run, Table& table) {
  bool looked = false;
  for (const ProcessTrace& process : run.processes) {
    looked = looked || !process.samples.host_threads.empty();
    Tree(run, process, table).add_all();
  }
  if (!looked)
    table.notes.push_back(
        "cpu and ready are not known: nobody looked at the processes (needs `python` in GPUTRACE_COLLECT, "
        "and a /proc that may be read)");
}

}  // namespace

extern constexpr SectionReport threads_report = {
    .section = "threads",
    .title = "Processes and threads, as a tree",
    .answers = "processes and threads with their parents: name, role, processor time, waits for the device, calls",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"pid", Unit::None},
                {"tid", Unit::None},
                {"name", Unit::Text},
                {"role", Unit::Text},
                {"parent", Unit::None},
                {"cpu_ns", Unit::Nanos},
                {"wait_ns", Unit::Nanos},
                {"calls", Unit::Count},
                extra({"ready_ns", Unit::Nanos}),
                extra({"samples", Unit::Count}),
                extra({"begin_ns", Unit::Nanos, Hint::Detail}),
                extra({"seen_ns", Unit::Nanos, Hint::Detail})},
    .notes = {"cpu = on a processor, from the thread's begin to seen, when it was last looked at (some four times a "
              "second): what "
              "it did after that is not known; ready = it could have run and had no processor; wait = host time in "
              "calls that "
              "wait for a device; role = main, backward or loader where it can be told; parent = the process that it "
              "belongs to, "
              "or came from"},
    .fill = fill_threads,
    .of_all_devices = true,
};

}  // namespace gputrace
