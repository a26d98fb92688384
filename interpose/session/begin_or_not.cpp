#include "interpose/session/begin_or_not.h"

#include <errno.h>
#include <regex.h>

#include <cstring>

#include "interpose/settings/environment.h"
#include "interpose/settings/memory_room.h"

namespace gputrace {
namespace {

bool process_selected(const char* pattern, const char* executable, InfoText& info) {
  const char* slash = std::strrchr(executable, '/');
  regex_t regex;
  if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
    info.add("option_warning", "GPUTRACE_PROCESS is not a regular expression; every process is traced");
    return true;
  }
  const bool matches = regexec(&regex, slash ? slash + 1 : executable, 0, nullptr, 0) == 0;
  regfree(&regex);
  return matches;
}

bool rank_is_selected(const char* list, InfoText& info, char* scratch, u32 capacity, Reason& reason) {
  bool valid = false;
  const Rank rank = read_rank(read_environment(scratch, capacity));
  if (rank_selected(list, rank, valid)) return true;
  if (!valid) {
    info.add("option_warning",
             "GPUTRACE_RANKS cannot be read (expected a list such as 0,8-15,local0); every rank is traced");
    return true;
  }
  reason.what << "GPUTRACE_RANKS=" << list << " does not select ";
  if (rank.rank < 0)
    reason.what << "a process without a rank";
  else
    reason.what << "rank " << static_cast<u64>(rank.rank);
  reason.fix << "unset GPUTRACE_RANKS, or name the rank in it";
  return false;
}

}  // namespace

bool is_wanted(const Options& options, InfoText& info, const char* executable, char* scratch, u32 capacity,
               Reason& reason) {
  if (!options.enabled) {
    reason.what << "GPUTRACE=0 turns tracing off";
    reason.fix << "unset GPUTRACE";
    return false;
  }
  if (!options.collect_any) {
    reason.what << "GPUTRACE_COLLECT=" << copied_variable("GPUTRACE_COLLECT")
                << " leaves nothing that this version collects";
    reason.fix << "GPUTRACE_COLLECT=api,device";
    return false;
  }
  if (options.process && !process_selected(options.process, executable, info)) {
    reason.what << "GPUTRACE_PROCESS=" << options.process << " does not match this program";
    reason.fix << "unset GPUTRACE_PROCESS, or let it match the executable's name";
    return false;
  }
  return !options.ranks || rank_is_selected(options.ranks, info, scratch, capacity, reason);
}

Bytes choose_budget(Options& options, InfoText& info, Reason& reason) {
  const MemoryRoom room = memory_room();
  const MemoryPlan plan = plan_memory(room, options.buffer, options.collect_device,
                                      options.collect_python || options.collect_operations || options.collect_stacks);
  if (!plan.ring) {
    reason.what << room.limit << " leaves " << room.bytes / 1024
                << " KiB for tracing (1 % of it, a tenth of what is free), which is too little";
    reason.fix << "a higher limit";
    return 0;
  }
  Sentence text;
  if (plan.ring < options.buffer) {
    text << room.limit << " leaves less than GPUTRACE_BUFFER; a smaller ring is used";
    info.add("option_warning", text.text());
  }
  const auto leave_out = [&](bool& wanted, bool has_room, const char* what) {
    if (!wanted || has_room) return;
    wanted = false;
    text.clear();
    text << what << ": " << room.limit << " leaves too little room for it";
    info.add("not_collected", text.text());
  };
  leave_out(options.collect_device, plan.device, "device");
  options.latency = options.latency && options.collect_device;
  options.environment = options.environment && options.collect_device;
  leave_out(options.collect_python, plan.stacks, "python");
  leave_out(options.collect_operations, plan.stacks, "ops");
  leave_out(options.collect_stacks, plan.stacks, "stacks");
  info.add("option.buffer_bytes", plan.ring);
  return plan.ring;
}

const char* error_word(int error) {
  switch (error) {
    case ENOMEM:
      return "there is not enough memory";
    case ENOENT:
      return "there is no such file";
    case EACCES:
      return "it is not executable";
    case ENOEXEC:
      return "it is no program of this machine";
    case EAGAIN:
      return "no more processes are allowed (ulimit -u)";
    case EMFILE:
    case ENFILE:
      return "no more open files are allowed (ulimit -n)";
    case EPERM:
    case ENOSYS:
      return "a system call that it needs is not allowed here";
    case ENOSPC:
      return "there is no room left";
    default:
      return "the system refused it";
  }
}

}  // namespace gputrace
