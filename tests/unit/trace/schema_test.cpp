// The schema of each file: every number that has a word, what older files lack, what newer files bring.
#include <set>

#include "tests/unit/trace/helpers.h"

namespace gputrace::test {
namespace {

TraceSchema parsed(const std::string& text) {
  TraceSchema schema;
  schema.add_text(text);
  return schema;
}

std::string word(const TraceSchema& schema, u16 type, const std::string& field, u64 number) {
  const TraceRecordType* record = schema.record(type);
  for (const TraceField& candidate : record->fields) {
    if (candidate.name != field) continue;
    const TraceEnum* words = schema.words(*record, candidate);
    if (words == nullptr) return "no words";
    for (const TraceValue& value : words->values)
      if (value.number == number) return value.word;
  }
  return "";
}

TEST(Schema, EveryEnumerationOfAFieldHasWords) {
  const TraceSchema schema = parsed(schema_text());
  EXPECT_EQ(schema.bad_lines(), 0u);
  ASSERT_EQ(schema.enums().size(), kEnumSchemaCount);
  const std::set<std::string> plain = {"handle", "address", "bytes", "count", "text", "index", "device_ns", "none"};
  std::set<std::string> without, used = {"RecordClass"};
  for (const TraceRecordType& record : schema.records()) {
    for (const TraceField& field : record.fields) {
      if (plain.count(field.unit)) continue;
      const TraceEnum* words = schema.words(record, field);
      if (field.unit == "enum" || field.unit == "flags") {
        EXPECT_EQ(words, nullptr);
        without.insert(record.name + "." + field.name);
        continue;
      }
      ASSERT_NE(words, nullptr) << record.name << "." << field.name << " has the unit " << field.unit;
      EXPECT_FALSE(words->values.empty()) << field.unit;
      used.insert(field.unit);
    }
  }
  const std::set<std::string> cuda = {
      "Alloc.flags",      "Collective.reduction",    "Collective.type", "Convolution.compute", "Convolution.math_mode",
      "Convolution.type", "DeviceEnvironment.third", "DeviceLoss.kind", "DeviceState.kinds",   "Fft.type",
      "Matmul.compute",   "Matmul.math_mode",        "Matmul.type_a",   "Matmul.type_b",       "Matmul.type_c"};
  EXPECT_EQ(without, cuda);
  for (const TraceEnum& words : schema.enums()) EXPECT_TRUE(used.count(words.name)) << words.name << " is of no field";
}

// The text and the tables are two readings of records.def.
TEST(Schema, TheTextSaysWhatTheTablesHold) {
  const TraceSchema schema = parsed(schema_text());
  ASSERT_EQ(schema.records().size(), kRecordSchemaCount);
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    const RecordSchema& table = kRecordSchemas[i];
    const TraceRecordType* text = schema.record(table.type);
    ASSERT_NE(text, nullptr) << table.name;
    EXPECT_EQ(text->name, table.name);
    EXPECT_EQ(text->doc, table.doc);
    EXPECT_EQ(text->size, table.size);
    EXPECT_EQ(schema.class_of(table.type), table.record_class) << table.name;
    ASSERT_EQ(text->fields.size(), table.field_count) << table.name;
    for (u32 j = 0; j < table.field_count; ++j) {
      EXPECT_EQ(text->fields[j].name, table.fields[j].name);
      EXPECT_EQ(text->fields[j].offset, table.fields[j].offset) << table.name << "." << table.fields[j].name;
      EXPECT_EQ(text->fields[j].unit, table.fields[j].unit) << table.name << "." << table.fields[j].name;
    }
  }
  std::string all(write_schema_text(nullptr, 0), '?'), cut(100, '?');
  EXPECT_EQ(write_schema_text(all.data(), all.size()), all.size());
  EXPECT_EQ(write_schema_text(cut.data(), 99), all.size()) << "the whole length, where there is less room";
  EXPECT_EQ(cut, all.substr(0, 99) + "?");
}

TEST(Schema, EachNumberHasOneWord) {
  for (u32 i = 0; i < kEnumSchemaCount; ++i) {
    const EnumSchema& words = kEnumSchemas[i];
    std::set<u64> numbers;
    std::set<std::string> seen;
    for (u32 j = 0; j < words.value_count; ++j) {
      const ValueSchema& value = words.values[j];
      EXPECT_TRUE(numbers.insert(value.number).second) << words.name << " " << value.number;
      EXPECT_TRUE(seen.insert(value.word).second) << words.name << " " << value.word;
      if (words.flags) {
        EXPECT_EQ(value.number & (value.number - 1), 0u) << words.name << " " << value.word;
      }
    }
  }
  EXPECT_STREQ(word_of(MemoryKind::Pageable), "pageable");
  EXPECT_STREQ(word_of(kHgmma), "HGMMA");
  EXPECT_STREQ(word_of(static_cast<MemoryKind>(99)), "");
  EXPECT_STREQ(schema_of(PrecisionBits{}).values[1].word, "fp32") << "by width, not by number";
}

TEST(Schema, AFileWithoutWordsGetsTheReaders) {
  const TraceSchema old = parsed(
      "record 6 Copy 72 \"one copy\"\n"
      "field Copy kind u8 64 enum \"CopyKind\"\n"
      "field Copy flags u32 68 flags \"LaunchFlags\"\n"
      "field Copy odd u32 68 enum \"of a version that never was\"\n"
      "record 900 Other 32 \"\"\n"
      "field Other kind u8 24 enum \"\"\n");
  EXPECT_EQ(old.bad_lines(), 0u);
  EXPECT_EQ(old.record(6)->doc, "one copy");
  EXPECT_EQ(word(old, 6, "kind", 1), "HtoD");
  EXPECT_EQ(word(old, 6, "flags", kLaunchCaptured), "Captured");
  EXPECT_EQ(word(old, 6, "odd", 1), "no words");
  EXPECT_EQ(word(old, 900, "kind", 1), "no words");
  EXPECT_EQ(old.class_of(6), RecordClass::Call);
  EXPECT_EQ(old.class_of(900), RecordClass::Unknown);
}

TEST(Schema, ANewerFileBringsItsWords) {
  const TraceSchema newer = parsed(
      "record 900 Later 32 call quick \"a later call\"\n"
      "field Later mood u8 24 Mood exact \"how it \"went\"\"\n"
      "record 901 Odd 24 astral \"of a class of its own\"\n"
      "record 6 Copy 72 device \"a class that this version knows better\"\n"
      "field Copy kind u8 64 CopyKind \"\"\n"
      "enum CopyKind \"\"\n"
      "value CopyKind 77 HtoMoon \"far\"\n"
      "enum Mood \"\"\n"
      "value Mood 3 merry\n"
      "value Mood 18446744073709551615 sad later-word \"doc\"\n"
      "poem roses are red\n");
  EXPECT_EQ(newer.bad_lines(), 1u) << "the line of a kind that is not known";
  EXPECT_EQ(word(newer, 900, "mood", 3), "merry");
  EXPECT_EQ(word(newer, 900, "mood", ~u64{0}), "sad");
  EXPECT_EQ(word(newer, 6, "kind", 77), "HtoMoon");
  EXPECT_EQ(newer.record(900)->doc, "a later call");
  EXPECT_EQ(newer.record(900)->fields[0].doc, "how it \"went\"");
  EXPECT_EQ(newer.enums()[1].values[1].doc, "doc");
  EXPECT_EQ(newer.class_of(900), RecordClass::Call);
  EXPECT_EQ(newer.class_of(901), RecordClass::Unknown);
  EXPECT_EQ(newer.class_of(6), RecordClass::Call);
}

TEST(Schema, BadLinesAreSkippedAndCounted) {
  const std::string good = "enum Mood \"\"\nvalue Mood 1 merry\nrecord 900 Later 32 \"\"\n";
  const char* bad[] = {"enum Mood \"again\"",
                       "enum \"no name\"",
                       "enum Mo\"od",
                       "value Mood 1 other",
                       "value Mood -1 other",
                       "value Mood 18446744073709551616 other",
                       "value Mood 2",
                       "value Mood 2 a|b",
                       "value Mood 2 \x1b[31m",
                       "value Mood 2 caf\xc3\xa9",
                       "value None 2 other",
                       "record 900 Twice 24 \"\"",
                       "record 70000 Large 24 \"\"",
                       "record 901 \x1b[31m 24 \"\"",
                       "field Later \x07 u8 24 none \"\"",
                       "field Later a\"b u8 24 none \"\"",
                       "field Later beyond u64 32 none \"\"",
                       "field None x u8 24 none \"\""};
  for (const char* line : bad) {
    const TraceSchema schema = parsed(good + line + "\n");
    EXPECT_EQ(schema.bad_lines(), 1u) << line;
    ASSERT_EQ(schema.enums().size(), 1u) << line;
    EXPECT_EQ(schema.enums()[0].values.size(), 1u) << line;
    ASSERT_EQ(schema.records().size(), 1u) << line;
    EXPECT_TRUE(schema.records()[0].fields.empty()) << line;
  }
}

TEST(Schema, ManyValuesDoNotMakeItSlow) {
  std::string text = "enum Mood \"\"\n";
  for (u32 i = 0; i < 100'000; ++i) text += "value Mood " + std::to_string(i) + " w\n";
  const TraceSchema schema = parsed(text);
  EXPECT_EQ(schema.enums()[0].values.size() + schema.bad_lines(), 100'000u);
  EXPECT_LE(schema.enums()[0].values.size(), 1024u);
}

}  // namespace
}  // namespace gputrace::test
