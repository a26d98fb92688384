// NVTX calls as fast as they can be made, in batches with pauses; prints what one push and pop took: `NS_MIN
// NS_MEDIAN`.
//   nvtx_calls ascii|registered|distinct|mark BATCHES PAIRS PAUSE_US
// distinct: 64 messages in turn. mark: one nvtxMark, no pair.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "usage: nvtx_calls WHAT BATCHES PAIRS PAUSE_US\n"), 2;
  const std::string what = argv[1];
  const int batches = std::atoi(argv[2]), pairs = std::atoi(argv[3]), pause_us = std::atoi(argv[4]);
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  const timespec start{0, 300'000'000};  // the sidecar's own start is not what is measured
  nanosleep(&start, nullptr);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("bench");
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "forward");
  std::vector<std::string> messages;
  messages.reserve(64);
  for (int i = 0; i < 64; ++i) messages.push_back("transformer block " + std::to_string(i));
  std::vector<double> ns;
  for (int b = 0; b < batches; ++b) {
    const double begin = now_ns();
    for (int i = 0; i < pairs; ++i) {
      if (what == "registered") {
        nvtxDomainRangePushEx(domain, &attributes);
        nvtxDomainRangePop(domain);
      } else if (what == "mark") {
        nvtxMarkA("forward pass");
      } else {
        nvtxRangePushA(what == "ascii" ? "forward pass" : messages[static_cast<unsigned>(i) % 64].c_str());
        nvtxRangePop();
      }
    }
    ns.push_back((now_ns() - begin) / pairs);
    const timespec pause{pause_us / 1000000, (pause_us % 1000000) * 1000L};
    nanosleep(&pause, nullptr);
  }
  std::sort(ns.begin(), ns.end());
  std::printf("%.2f %.2f\n", ns.front(), ns[ns.size() / 2]);
  return 0;
}
