// The words of numbers in records: of enums (a value has one) and of flags (each bit that is set has one).
#pragma once

#include <span>
#include <string_view>

#include "base/types.h"

namespace gputrace {

struct ValueWord {
  u64 value;  // of flags: the bit
  std::string_view word;
};

struct FieldWords {
  bool flags = false;
  std::span<const ValueWord> words;  // empty: the field's numbers have no words
};

// Names as in trace/records.def, whose values are CUDA's and CUPTI's own where trace/record.h has none.
FieldWords field_words(std::string_view record, std::string_view field);

// MmaClass, older generations first; PrecisionBits, the widest first.
std::span<const ValueWord> matrix_instruction_words();
std::span<const ValueWord> input_type_words();

}  // namespace gputrace
