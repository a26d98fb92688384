#include "writer/sample/own_interpreter.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "writer/host.h"

namespace gputrace {
namespace {

constexpr u32 kMostThreads = 4096;

struct Mapping {
  u64 begin = 0;
  std::string file;  // "fd:01 123456"; empty: of no file
  std::string name;
};

// Calls visit(mapping) for each, in order, until it returns true.
template <typename Visit>
void visit_mappings(i32 process, Visit&& visit) {
  const std::string path = "/proc/" + std::to_string(process) + "/maps";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) return;
  char* line = nullptr;
  std::size_t size = 0;
  while (::getline(&line, &size, file.get()) > 0) {
    Mapping mapping;
    char device[24];
    u64 inode = 0;
    int name = 0;
    if (std::sscanf(line, "%" SCNx64 "-%*x %*s %*x %23s %" SCNu64 " %n", &mapping.begin, device, &inode, &name) != 3)
      continue;
    if (inode) mapping.file = std::string(device) + " " + std::to_string(inode);
    mapping.name = line + name;
    if (visit(mapping)) break;
  }
  std::free(line);
}

}  // namespace

// Calls visit(PyThreadState) for each thread, the newest first; false: the way breaks off.
template <typename Visit>
bool OwnInterpreter::visit_threads(ProcessMemory& process, u64 runtime, Visit&& visit) const {
  u64 interpreter = 0, thread = 0;
  process.look_anew(0);
  if (!process.read(runtime + layout_.runtime_interpreter, &interpreter, sizeof interpreter) || !interpreter ||
      !process.read(interpreter + layout_.interpreter_threads, &thread, sizeof thread))
    return false;
  for (u32 i = 0; thread && i < kMostThreads; ++i) {
    visit(thread);
    if (!process.read(thread + kNextThreadOffset, &thread, sizeof thread)) return false;
  }
  return thread == 0;
}

bool OwnInterpreter::prove(ProcessMemory& traced, u64 runtime, u64 thread) {
  bool seen = false;
  if (!runtime || !visit_threads(traced, runtime, [&](u64 each) { seen = seen || each == thread; }) || !seen)
    return false;
  // A variable without contents lies behind its file's last page, in memory of no file.
  Mapping holds;
  visit_mappings(traced.process(), [&](const Mapping& mapping) {
    if (mapping.begin > runtime) return true;
    if (!mapping.file.empty() && mapping.file != holds.file) holds = mapping;
    return false;
  });
  file_ = holds.file;
  offset_ = runtime - holds.begin;
  return !file_.empty();
}

PythonThread OwnInterpreter::first_thread(ProcessMemory& process) const {
  PythonThread first;
  u64 runtime = 0;
  visit_mappings(process.process(), [&](const Mapping& mapping) {
    if (mapping.file == file_) runtime = mapping.begin + offset_;
    return runtime != 0;
  });
  if (!runtime || !visit_threads(process, runtime, [&](u64 thread) { first.state = thread; })) return {};
  if (!first.state || !process.read(first.state + layout_.thread_id, &first.id, sizeof first.id) || !first.id)
    return {};
  return first;
}

std::vector<PythonThread> OwnInterpreter::threads(ProcessMemory& process, u64 runtime, std::size_t most) const {
  std::vector<PythonThread> found;
  const bool whole = visit_threads(process, runtime, [&](u64 thread) {
    PythonThread each{thread, 0};
    if (found.size() < most && process.read(thread + layout_.thread_id, &each.id, sizeof each.id) && each.id)
      found.push_back(each);
  });
  return whole ? found : std::vector<PythonThread>();
}

bool is_worker_begun_anew(i32 process, i32 parent) {
  const auto command = [](i32 of) { return read_small_file("/proc/" + std::to_string(of) + "/cmdline", 4096); };
  const auto imports = [](const std::string& words, const char* module) {
    return words.find("from multiprocessing." + std::string(module) + " import") != std::string::npos;
  };
  const std::string words = command(process);
  const bool is_of_loky =
      words.find("loky.backend.popen_loky_posix") != std::string::npos;  // also as joblib's own copy
  return is_of_loky || words.starts_with("ray::") || imports(words, "spawn") ||
         (imports(words, "forkserver") && imports(command(parent), "forkserver"));
}

bool has_own_ring(i32 process) {
  bool found = false;
  visit_mappings(process, [&](const Mapping& mapping) {
    found = mapping.name.find("/memfd:gputrace") != std::string::npos ||
            (mapping.name.find("/gputrace-") != std::string::npos && mapping.name.find(".ring") != std::string::npos);
    return found;
  });
  return found;
}

}  // namespace gputrace
