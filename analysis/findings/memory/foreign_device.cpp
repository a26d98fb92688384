// A process that has a context on a device on which another one computes and it does not, and mostly memory: a rank that was not yet told its own
// when it loaded or asked something. What the context itself takes there no call tells.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/sites.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kFewOf = 100;  // a hundredth of its kernels' time elsewhere is no computing there

u64 kernels_ns(const DeviceTimes& device) { return device.compute_ns + device.collective_ns; }

// The only one on which the process computes. nullptr: it computes on none, or on several.
const DeviceTimes* own_device(const ProcessTrace& process) {
  const DeviceTimes* own = nullptr;
  u64 all = 0;
  for (const DeviceTimes& device : process.device.devices) {
    all += kernels_ns(device);
    if (!own || kernels_ns(device) > kernels_ns(*own)) own = &device;
  }
  return own && all != 0 && (all - kernels_ns(*own)) * kFewOf < all ? own : nullptr;
}

struct Foreign {
  std::size_t process = 0, owner = 0;  // indices in LoadedRun::processes
  Value own, device;                   // numbers in the run: its own, and the other
  i32 ordinal = -1;                    // the process's own number of the other
  u64 bytes = 0;                       // that it held there; 0: the context alone
};

u64 held_by(const ProcessTrace& process, i32 device) {
  u64 bytes = 0;
  for (const DeviceMemory& memory : process.device_memory)
    if (memory.device == device) bytes = std::max(bytes, memory.peak_bytes);
  return bytes;
}

// Devices on which it has a context or memory.
std::set<i32> devices_of(const ProcessTrace& process) {
  std::set<i32> devices;
  for (const Context& context : process.contexts) devices.insert(context.device);
  for (const DeviceMemory& memory : process.device_memory)
    if (memory.peak_bytes != 0) devices.insert(memory.device);
  return devices;
}

bool were_alive_together(const ProcessTrace& a, const ProcessTrace& b) {
  return a.first_realtime <= b.first_realtime + (b.end - b.begin) &&
         b.first_realtime <= a.first_realtime + (a.end - a.begin);
}

i64 whole_of(const Value& number) {
  const i64* const whole = std::get_if<i64>(&number);
  return whole ? *whole : -1;
}

std::vector<Foreign> foreign_devices(const LoadedRun& run) {
  const DeviceMap devices(run);
  std::vector<const DeviceTimes*> own;
  for (const ProcessTrace& process : run.processes) own.push_back(own_device(process));
  const auto owner_of = [&](const Value& device, std::size_t but) {
    std::size_t p = 0;
    while (p < own.size() && (p == but || !own[p] || !(devices.number(p, own[p]->device) == device) ||
                              !were_alive_together(run.processes[p], run.processes[but])))
      ++p;
    return p;
  };
  std::vector<Foreign> found;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    if (!own[p]) continue;
    for (const i32 ordinal : devices_of(run.processes[p])) {
      const Value device = devices.number(p, ordinal);
      if (device == Value() || ordinal == own[p]->device) continue;
      const std::size_t owner = owner_of(device, p);
      if (owner == own.size()) continue;
      found.push_back(
          {p, owner, devices.number(p, own[p]->device), device, ordinal, held_by(run.processes[p], ordinal)});
    }
  }
  return found;
}

// Where most of it was allocated: what PyTorch had given out at its peak, else what the driver had and was not given back.
std::string site_of_memory(const ProcessTrace& process, i32 device) {
  u32 origin = 0;
  u64 most = 0;
  for (const FrameworkMemory& memory : process.tensors) {
    for (const TensorPart& part : memory.at_peak) {
      if (memory.device == device && part.bytes > most) most = part.bytes, origin = part.origin;
    }
  }
  if (most == 0) {
    for (const LiveMemory& live : process.live_memory) {
      if (live.device == device && live.bytes > most) most = live.bytes, origin = live.origin;
    }
  }
  return most ? site_of_origin(process.lines, origin, FileNames(process)) : "";
}

void find_foreign_device(const LoadedRun& run, Findings& found) {
  const std::vector<Foreign> all = foreign_devices(run);
  if (all.empty()) return;
  const Foreign& worst =
      *std::max_element(all.begin(), all.end(), [](const Foreign& a, const Foreign& b) { return a.bytes < b.bytes; });
  const ProcessTrace& process = run.processes[worst.process];
  Finding finding;
  finding.id = "foreign-device";
  finding.severity = Severity::Warning;
  finding.section = "memory";
  finding.text = fmt::format(
      "it {} device {}, on which {} computes and it does not (it computes on device {}); {} takes memory there, which "
      "no "
      "call tells",
      worst.bytes ? "holds " + human_bytes(worst.bytes) + " of" : "has a context on", whole_of(worst.device),
      name_of(run.processes[worst.owner]), whole_of(worst.own), worst.bytes ? "its context too" : "that");
  finding.fix = advise(Advice::OwnDevice, process);
  finding.site = site_of_memory(process, worst.ordinal);
  finding.evidence = {{"device", worst.device},
                      {"own_device", worst.own},
                      {"peak_bytes", number(worst.bytes)},
                      {"pid", static_cast<i64>(process.who.pid)}};
  say_whose(finding, process, all.size());
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule foreign_device_rule = {
    .findings =
        {{"foreign-device",
          "a process that has a context, and mostly memory, on a device on which another computes and it does not"}},
    .needs = {Need::Device},
    .find = find_foreign_device,
};

}  // namespace gputrace
