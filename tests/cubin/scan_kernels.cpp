// Prints what the scan says of each kernel in the given images, one line each, for the truth tests:
// FILE KERNEL sm VARIANT mma=… precision=… flags=… instructions=… … Exit 1 if an image cannot be read.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cubin/sass.h"
#include "trace/schema.h"

namespace {

std::string words(std::uint64_t bits, const gputrace::EnumSchema& schema) {
  std::string text;
  for (gputrace::u32 i = 0; i < schema.value_count; ++i) {
    if ((bits & schema.values[i].number) == 0) continue;
    if (!text.empty()) text += '|';
    text += schema.values[i].word;
  }
  return text.empty() ? "-" : text;
}

void print(const char* file, const gputrace::KernelScan& scan) {
  using namespace gputrace;
  std::printf("%s %.*s sm=%u mma=%s precision=%s flags=%s n=%u matrix=%u fp64=%u fp32=%u fp16=%u bf16=%u regs=%d\n",
              file, static_cast<int>(scan.symbol.size()), scan.symbol.data(), scan.architecture,
              words(scan.mma, schema_of(MmaClass{})).c_str(), words(scan.precision, schema_of(PrecisionBits{})).c_str(),
              words(scan.flags, schema_of(CodeKernelFlags{})).c_str(), scan.instructions, scan.mma_instructions,
              scan.fp64, scan.fp32, scan.fp16, scan.bf16, scan.registers ? static_cast<int>(*scan.registers) : -1);
}

}  // namespace

int main(int argc, char** argv) {
  bool good = argc > 1;
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    gputrace::ScanTotals totals;
    const char* file = argv[i];
    const bool read = gputrace::for_each_kernel_code(
        std::as_bytes(std::span(bytes.data(), bytes.size())), {},
        [file](const gputrace::KernelScan& scan) { print(file, scan); }, &totals);
    if (read && totals.failures == 0) continue;
    std::fprintf(stderr, "%s: %s\n", file, totals.first_failure.c_str());
    good = false;
  }
  return good ? 0 : 1;
}
