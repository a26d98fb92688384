// One finding of a report's, by its id; one piece of a finding's evidence, by its key.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"

namespace gputrace::test {

inline const Finding* find(const std::vector<Finding>& findings, const std::string& id) {
  const auto it =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.id == id; });
  return it == findings.end() ? nullptr : &*it;
}

inline Value evidence(const Finding& finding, const std::string& key) {
  for (const auto& [name, value] : finding.evidence) {
    if (name == key) return value;
  }
  ADD_FAILURE() << finding.id << " has no evidence " << key;
  return {};
}

inline bool has(const Finding& finding, const std::string& key) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const auto& each) { return each.first == key; });
}

}  // namespace gputrace::test
