#include "analysis/findings/device_idle.h"

#include <map>

namespace gputrace {

namespace {

void add_process(const ProcessTrace& process, IdleCause cause, bool (*wanted)(const std::string& call),
                 IdleShare& share, std::map<std::string, u64>& by_call) {
  std::map<u16, std::string> names;
  for (const CallFacts& call : process.calls) names[call.id] = call.name;
  for (const DeviceTimes& device : process.device.devices) {
    if (!wanted) {
      share.count += device.causes[static_cast<unsigned>(cause)].count;
      share.total_ns += device.causes[static_cast<unsigned>(cause)].total_ns;
    }
    for (const IdleByCall& each : device.causes_by_call) {
      const auto name = names.find(each.call);
      if (each.cause != cause || name == names.end()) continue;
      if (wanted && !wanted(name->second)) continue;
      if (wanted) {
        share.count += each.sum.count;
        share.total_ns += each.sum.total_ns;
      }
      by_call[name->second] += each.sum.total_ns;
    }
  }
}

IdleShare with_worst(IdleShare share, const std::map<std::string, u64>& by_call) {
  u64 most = 0;
  for (const auto& [name, ns] : by_call) {
    if (ns > most) most = ns, share.call = name;
  }
  return share;
}

}  // namespace

IdleShare idle_of(const ProcessTrace& process, IdleCause cause, bool (*wanted)(const std::string& call)) {
  IdleShare share;
  std::map<std::string, u64> by_call;
  add_process(process, cause, wanted, share, by_call);
  return with_worst(std::move(share), by_call);
}

IdleShare idle_of(const LoadedRun& run, IdleCause cause, bool (*wanted)(const std::string& call)) {
  IdleShare share;
  std::map<std::string, u64> by_call;
  for (const ProcessTrace& process : run.processes) add_process(process, cause, wanted, share, by_call);
  return with_worst(std::move(share), by_call);
}

u64 device_span_ns(const LoadedRun& run) {
  u64 span = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const DeviceTimes& device : process.device.devices) span += device.span_ns();
  }
  return span;
}

bool is_async_call(const std::string& call) { return call.find("Async") != std::string::npos; }
bool is_blocking_call(const std::string& call) { return !is_async_call(call) && !is_memset_call(call); }
bool is_memset_call(const std::string& call) { return call.find("Memset") != std::string::npos; }

}  // namespace gputrace
