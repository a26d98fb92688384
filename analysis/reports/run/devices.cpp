// The devices that were in use.
#include <cstdio>

#include "analysis/reports/section_report.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

Value capability_of(const Device& device) {
  if (device.capability_major == 0) return {};
  return std::to_string(device.capability_major) + "." + std::to_string(device.capability_minor);
}

// Domain, bus and device. All 0 is the host bridge's place: nobody said it.
Value pci_of(const Device& device) {
  if (device.pci_domain == 0 && device.pci_bus_device == 0) return {};
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x", device.pci_domain & 0xffff, (device.pci_bus_device >> 8) & 0xff,
                device.pci_bus_device & 0xff);
  return std::string(text);
}

void fill_devices(const LoadedRun& run, Table& table) {
  const DeviceMap devices(run);
  for (const DeviceMap::Entry& entry : devices.entries()) {
    const Device& device = entry.device;
    table.rows.push_back({entry.host, entry.number, text_or_null(device.name), text_or_null(device.uuid),
                          device.sms ? number(static_cast<u64>(device.sms)) : Value(), capability_of(device),
                          device.memory_bytes ? number(device.memory_bytes) : Value(), static_cast<i64>(device.ordinal),
                          pci_of(device)});
  }
}

}  // namespace

extern constexpr SectionReport devices_report = {
    .section = "devices",
    .title = "Devices in use",
    .answers = "the devices that were in use",
    .shown = Shown::OnDemand,
    .needs = {},
    .columns = {{"host", Unit::Text},
                {"device", Unit::None},
                {"name", Unit::Text, Hint::Name},
                {"uuid", Unit::Text, Hint::Detail},
                {"sms", Unit::Count},
                {"capability", Unit::Text},
                {"memory_bytes", Unit::Bytes},
                extra({"ordinal", Unit::None, Hint::Detail}),
                extra({"pci", Unit::Text, Hint::Detail})},
    .notes = {"device = the number in all tables; ordinal = what a process calls it"},
    .fill = fill_devices,
    .of_all_devices = true,
};

}  // namespace gputrace
