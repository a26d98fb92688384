#include "simgpu/cupti/layout.h"

#include <string>

#include "simgpu/cupti/headers.h"
#include "simgpu/cupti/knobs.h"

namespace simgpu::cupti {

namespace {

// From the headers: cupti_version.h for the version numbers, the structures of cupti_activity_deprecated.h for the
// sizes, its comments and the release notes for when each was replaced. 13.2's kernel record is longer than these
// headers know: its tail is our invention, and readers have to leave it alone.
constexpr size_t kUnknownTail = 24;

Layout newest(const char* cuda, uint32_t api_version) {
  return {cuda,
          api_version,
          sizeof(CUpti_ActivityKernel10),
          sizeof(CUpti_ActivityMemcpy6),
          sizeof(CUpti_ActivityMemcpyPtoP4),
          sizeof(CUpti_ActivityMemset4),
          sizeof(CUpti_ActivityGraphTrace2),
          sizeof(CUpti_ActivitySynchronization2),
          sizeof(CUpti_ActivityOverhead3),
          sizeof(CUpti_ActivityMemory4),
          sizeof(CUpti_ActivityMemoryPool3),
          sizeof(CUpti_ActivityJit2),
          sizeof(CUpti_ActivityDevice5),
          sizeof(CUpti_ActivityContext3)};
}

Layout cuda_12_8(const char* cuda, uint32_t api_version) {
  Layout layout = newest(cuda, api_version);
  layout.kernel = sizeof(CUpti_ActivityKernel9);
  return layout;
}

Layout cuda_12_4(const char* cuda, uint32_t api_version) {
  Layout layout = cuda_12_8(cuda, api_version);
  if (api_version < 22) layout.overhead = sizeof(CUpti_ActivityOverhead2);
  layout.copy = sizeof(CUpti_ActivityMemcpy5);
  layout.sync = sizeof(CUpti_ActivitySynchronization);
  layout.memory = sizeof(CUpti_ActivityMemory3);
  layout.pool = sizeof(CUpti_ActivityMemoryPool2);
  layout.context = sizeof(CUpti_ActivityContext2);
  layout.device = sizeof(CUpti_ActivityDevice4);
  return layout;
}

Layout cuda_12_0(const char* cuda, uint32_t api_version) {
  Layout layout = cuda_12_4(cuda, api_version);
  layout.overhead = sizeof(CUpti_ActivityOverhead);
  layout.graph = sizeof(CUpti_ActivityGraphTrace);
  layout.jit = sizeof(CUpti_ActivityJit);
  layout.context = sizeof(CUpti_ActivityContext);
  return layout;
}

// The last of CUDA 11, for readers that must stay out of it or get along.
Layout cuda_11_8(const char* cuda, uint32_t api_version) {
  Layout layout = cuda_12_0(cuda, api_version);
  layout.kernel = sizeof(CUpti_ActivityKernel8);
  return layout;
}

Layout cuda_13_2(const char* cuda, uint32_t api_version) {
  Layout layout = newest(cuda, api_version);
  layout.kernel += kUnknownTail;
  return layout;
}

Layout find_layout() {
  const std::string& wanted = knobs().layout;
  const Layout known[] = {
      cuda_11_8("11.8", 18),     cuda_12_0("12.0", 19),     cuda_12_0("12.1", 19),  cuda_12_0("12.2", 20),
      cuda_12_4("12.3", 21),     cuda_12_4("12.4", 22),     cuda_12_4("12.5", 23),  cuda_12_4("12.6", 24),
      cuda_12_8("12.8", 26),     cuda_12_8("12.9", 28),     newest("13.0", 130001), newest("13.1", 130100),
      cuda_13_2("13.2", 130200), cuda_13_2("13.3", 130300),
  };
  for (const Layout& layout : known) {
    if (wanted == layout.cuda) return layout;
  }
  return newest("", CUPTI_API_VERSION);
}

}  // namespace

const Layout& layout() {
  static const Layout kLayout = find_layout();
  return kLayout;
}

bool has_per_call_switches() { return layout().api_version >= 23; }
bool has_thread_buffers() { return layout().api_version >= 21; }

}  // namespace simgpu::cupti
