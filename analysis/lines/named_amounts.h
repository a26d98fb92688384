// Amounts by name: of a line, of an operation. Which of them stands for all.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/types.h"

namespace gputrace {

class NamedAmounts {
 public:
  // Without a name it counts, and stands for nothing.
  void add(const std::string& name, u64 amount) {
    all_ += amount;
    if (name.empty() || amount == 0) return;
    of_[name] += amount;
    named_ += amount;
  }
  void add(const NamedAmounts& other) {
    all_ += other.all_, named_ += other.named_;
    for (const auto& [name, amount] : other.of_) of_[name] += amount;
  }
  // What lacks to `whole` has no name.
  void complete(u64 whole) { all_ = std::max(all_, whole); }

  // That with most; empty: there is none, or more than half has no name, so that any one would mislead.
  std::string most() const {
    if (named_ < all_ - named_) return "";
    const auto largest =
        std::max_element(of_.begin(), of_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return largest == of_.end() ? "" : largest->first;
  }
  // Of all that was added, be its name known or not.
  double share_of(const std::string& name) const {
    const auto at = of_.find(name);
    return at == of_.end() || all_ == 0 ? 0 : static_cast<double>(at->second) / static_cast<double>(all_);
  }
  bool has_names() const { return !of_.empty(); }

 private:
  std::map<std::string, u64> of_;
  u64 all_ = 0, named_ = 0;
};

}  // namespace gputrace
