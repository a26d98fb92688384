// The rate of the scan itself: one core, code in memory. `scan_code CUBIN`: its code, repeated to 256 MiB, ten times.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "cubin/sass_code.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream in(argv[1], std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto module = gputrace::read_cubin(std::as_bytes(std::span(bytes.data(), bytes.size())));
  if (!module) return 1;
  std::vector<std::byte> code;
  while (code.size() < (std::size_t{256} << 20)) {
    const std::size_t before = code.size();
    for (const auto& kernel : module->kernels) code.insert(code.end(), kernel.code.begin(), kernel.code.end());
    if (code.size() == before) return 1;
  }
  double best = 1e9;
  unsigned matrix = 0;
  for (int i = 0; i < 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    matrix = gputrace::scan_code(code, module->sm.number).mma_instructions;
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("{\"bytes\": %zu, \"best_s\": %.6f, \"matrix\": %u}\n", code.size(), best, matrix);
  return 0;
}
