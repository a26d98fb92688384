// What became of the machine code of a process: images as they were loaded, and scans of those that were asked about.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/record.h"

namespace gputrace {

class CodeCoverage {
 public:
  void add(const CodeImage& image);
  void add(const CodeScan& scan) { ++scans_[scan.state < scans_.size() ? scan.state : 0]; }

  u64 images(CodeState state) const { return images_[static_cast<u32>(state)]; }
  u64 scans(CodeScanState state) const { return scans_[static_cast<u32>(state)]; }
  // One sentence for each thing that is missing, and one that says what there is; nothing where nothing was loaded.
  std::vector<std::string> sentences() const;

 private:
  std::unordered_map<u64, u32> seen_;  // state by id: an image may serve several modules, and the newest state holds
  std::array<u64, 16> images_{};       // by CodeState; 0: states that this version does not know
  std::array<u64, 16> scans_{};        // by CodeScanState
};

}  // namespace gputrace
