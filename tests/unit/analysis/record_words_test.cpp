// Every enumeration and every set of flags of the schema has words in `dump`, but those whose numbers are CUDA's own.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "analysis/words/record_words.h"
#include "trace/record.h"
#include "trace/schema.h"

namespace gputrace {
namespace {

TEST(RecordWords, CoverTheSchema) {
  std::set<std::string> without;
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    const RecordSchema& record = kRecordSchemas[i];
    for (u32 j = 0; j < record.field_count; ++j) {
      const FieldSchema& field = record.fields[j];
      const std::string unit = field.unit;
      const FieldWords words = field_words(record.name, field.name);
      if (unit != "enum" && unit != "flags")
        EXPECT_TRUE(words.words.empty()) << record.name << "." << field.name;
      else if (words.words.empty())
        without.insert(std::string(record.name) + "." + field.name);
      else
        EXPECT_EQ(words.flags, unit == "flags") << record.name << "." << field.name;
    }
  }
  const std::set<std::string> cuda = {
      "Alloc.flags",      "Collective.reduction",    "Collective.type", "Convolution.compute", "Convolution.math_mode",
      "Convolution.type", "DeviceEnvironment.third", "DeviceLoss.kind", "DeviceState.kinds",   "Fft.type",
      "Matmul.compute",   "Matmul.math_mode",        "Matmul.type_a",   "Matmul.type_b",       "Matmul.type_c"};
  EXPECT_EQ(without, cuda);
}

TEST(RecordWords, EachValueHasOneWord) {
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    const RecordSchema& record = kRecordSchemas[i];
    for (u32 j = 0; j < record.field_count; ++j) {
      std::set<u64> values;
      std::set<std::string_view> seen;
      for (const ValueWord& row : field_words(record.name, record.fields[j].name).words) {
        EXPECT_TRUE(values.insert(row.value).second) << record.name << "." << record.fields[j].name << " " << row.value;
        EXPECT_TRUE(seen.insert(row.word).second) << record.name << "." << record.fields[j].name << " " << row.word;
      }
    }
  }
}

TEST(RecordWords, SayWhatTheNumbersMean) {
  const FieldWords memory = field_words("Copy", "source_memory");
  ASSERT_GE(memory.words.size(), 4u);
  EXPECT_EQ(memory.words[3].value, static_cast<u64>(MemoryKind::Pageable));
  EXPECT_EQ(memory.words[3].word, "pageable");
  EXPECT_TRUE(field_words("NoSuchRecord", "kind").words.empty());
  EXPECT_EQ(matrix_instruction_words().front().word, "HMMA");
  EXPECT_EQ(input_type_words().front().word, "fp64");
}

}  // namespace
}  // namespace gputrace
