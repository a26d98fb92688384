// Names that stand for names: a word for its kind and a number, the same for the same original wherever it is met, and, where the map is kept, in later runs.
//
//   kernel `_Z4gemmPf`                 → kernel_1
//   /home/ada/model/train.py           → /home/name_1/name_2/name_3.py     part by part: what lay in one folder still does
//
// A number tells nothing of the original: a hash of it would be found by whoever guesses names.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace gputrace {

// In the order of precedence where one text is of several.
enum class NameKind : u8 {
  Kernel,
  Operation,
  Function,
  Path,
  Range,
  Domain,
  Thread,
  Device,
  Build,
  Sentence,
  Host,
  Boot,
  Uuid,
  Job,
  Argument,
  Value,
  Text
};

class Pseudonyms {
 public:
  // Kinds whose names stay: --keep.
  bool keep(const std::string& word);  // false: there is no such kind
  static std::vector<std::string> keepable();

  std::string of(NameKind kind, std::string_view original);
  // The number that stands for it, from 1.
  u64 number(NameKind kind, std::string_view original);

  // What was kept of an earlier run: lines `kind \t number \t original`. False: this is no such map.
  bool read(std::string_view text);
  std::string text() const;

 private:
  std::string path(std::string_view original);
  std::string function(std::string_view original);
  std::string part(std::string_view original);
  std::string sentence(std::string_view original);
  std::string named(const char* word, std::string_view original);
  u64 numbered(const std::string& word, std::string_view original);

  std::set<NameKind> kept_;
  // By word (`kernel`), then by original.
  std::unordered_map<std::string, std::unordered_map<std::string, u64>> numbers_;
  std::unordered_map<std::string, std::string> known_;  // every original, for sentences that quote it
};

}  // namespace gputrace
