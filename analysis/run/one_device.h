// A run as one device saw it: what `--device` asks for. Facts of other devices are taken out; facts that no device has
// (calls, waits of the host, libraries' calls) stay as they are, and the report says of which sections that holds.
#pragma once

#include "analysis/facts/facts.h"

namespace gputrace {

// `device`: as DeviceMap numbers them.
LoadedRun of_one_device(LoadedRun run, i64 device);

// Several devices were used: without one, their calls are all of the asked for device.
bool uses_several_devices(const LoadedRun& run);

}  // namespace gputrace
