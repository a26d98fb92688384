#include "analysis/facts/code_coverage.h"

#include <utility>

namespace gputrace {
namespace {

struct Missing {
  u32 state;
  const char* why;
};
constexpr Missing kNotKept[] = {
    {static_cast<u32>(CodeState::OverBudget),
     "more than is copied (12 MiB an image; of a process 32 MiB, 64 MiB with those of which a kernel is asked for)"},
    {static_cast<u32>(CodeState::NoRoom), "the ring had no room for a copy (a larger GPUTRACE_BUFFER helps)"},
    {static_cast<u32>(CodeState::Unreadable), "the size could not be told"},
};
constexpr Missing kNotScanned[] = {
    {static_cast<u32>(CodeScanState::NoMatch), "it holds nothing for the devices in use"},
    {static_cast<u32>(CodeScanState::Broken), "it could not be read"},
    {static_cast<u32>(CodeScanState::Missing), "its file could not be opened"},
    {static_cast<u32>(CodeScanState::Changed), "its file is no longer what was loaded"},
    {static_cast<u32>(CodeScanState::Crashed), "the scanner did not survive it"},
    {static_cast<u32>(CodeScanState::TimedOut), "the scan took too long"},
    {static_cast<u32>(CodeScanState::NotFinished), "the scan was not done 30 s after the end"},
    {static_cast<u32>(CodeScanState::PiecesLost), "pieces of its copy were lost"},
    {static_cast<u32>(CodeScanState::TooMany), "a bound of the scanner was reached"},
};

std::string count_of(u64 count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

void CodeCoverage::add(const CodeImage& image) {
  const u32 state = image.state < images_.size() ? image.state : 0;
  const auto [seen, is_new] = seen_.emplace(image.image, state);
  ++images_[state];
  if (!is_new) --images_[std::exchange(seen->second, state)];
}

std::vector<std::string> CodeCoverage::sentences() const {
  std::vector<std::string> said;
  if (seen_.empty()) return said;
  u64 failed = 0;
  for (const Missing& missing : kNotScanned) failed += scans_[missing.state];
  const u64 scanned = scans(CodeScanState::Scanned);
  said.push_back("machine code: " + count_of(seen_.size(), "image", "images") + " loaded, " +
                 std::to_string(images(CodeState::InFile)) + " by reference, " +
                 std::to_string(images(CodeState::Copied)) + " by copy; of " + std::to_string(scanned + failed) +
                 " whose kernels were asked for " + std::to_string(scanned) + " could be read");
  for (const Missing& missing : kNotKept) {
    if (const u64 count = images_[missing.state])
      said.push_back("machine code: " + count_of(count, "image was", "images were") + " not kept: " + missing.why);
  }
  for (const Missing& missing : kNotScanned) {
    if (const u64 count = scans_[missing.state])
      said.push_back("machine code: " + count_of(count, "image was", "images were") + " not read: " + missing.why);
  }
  return said;
}

}  // namespace gputrace
