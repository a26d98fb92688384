// Loaded by nvtx_cpp: has NVTX's headers, and so its own table of functions.
#include <nvtx3/nvtx3.hpp>

namespace {
struct Training {
  static constexpr char const* name{"training"};
};
}  // namespace

extern "C" __attribute__((visibility("default"))) void run_plugin() {
  nvtx3::scoped_range_in<Training> range{"in the plugin"};
}
