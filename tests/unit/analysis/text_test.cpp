// The small parts: percentiles, names of kernels, text on a terminal, tables as text, JSON and CSV.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "analysis/diff/diff.h"
#include "analysis/facts/distribution.h"
#include "analysis/names/demangle.h"
#include "analysis/render/render.h"
#include "analysis/table/choose.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"
#include "tests/unit/analysis/small_report.h"
#include "trace/record.h"

namespace gputrace {
namespace {

TEST(Distribution, IsExactByNearestRank) {
  Distribution values;
  for (u64 i = 100; i >= 1; --i) values.add(i * 10'000'000'000ull / 100);
  EXPECT_EQ(values.count(), 100u);
  EXPECT_EQ(values.min(), 100'000'000u);
  EXPECT_EQ(values.max(), 10'000'000'000u);
  EXPECT_EQ(values.percentile(0.99), 9'900'000'000u);  // across the border of 32 bits
  EXPECT_EQ(values.percentile(0.5), 5'000'000'000u);
  EXPECT_EQ(values.percentile(1), 10'000'000'000u);
  EXPECT_EQ(values.percentile(0), 100'000'000u);
  EXPECT_FALSE(values.approximate());
}

// Close together, spread wide, drifting, with a few far away, above 32 bits: alone and merged from parts, the value of
// each rank is that of the sorted list; sums are right whenever they are asked for.
TEST(Distribution, IsExactHoweverValuesLie) {
  std::mt19937_64 random(5);
  const auto value = [&](unsigned how, u64 i) -> u64 {
    switch (how) {
      case 0:
        return 1000 + random() % 4000;
      case 1:
        return random() % 3'000'000'000ull;
      case 2:
        return i * 3 + random() % 100;
      case 3:
        return random() % 100 == 0 ? random() % 20'000'000 : random() % 300;
      case 4:
        return random() % 3 == 0 ? 6'000'000'000ull + random() % 1000 : 70'000 + random() % 10;
      default:
        return 77;
    }
  };
  for (unsigned how = 0; how < 36; ++how) {
    std::vector<u64> all;
    Distribution whole, parts[3];
    for (u64 i = 0; i < 20'000; ++i) {
      all.push_back(value(i % 3 == 0 ? how / 6 : how % 6, i));
      whole.add(all.back());
      parts[i % 3 == 0 ? 0 : 1 + i / 7000 % 2].add(all.back());
      if (i % 1500 != 1499) continue;
      const auto [least, most] = std::minmax_element(all.begin(), all.end());
      ASSERT_EQ(std::tuple(whole.count(), whole.sum(), whole.min(), whole.max()),
                std::tuple(all.size(), std::accumulate(all.begin(), all.end(), u64{0}), *least, *most))
          << how << " " << i;
    }
    EXPECT_EQ(parts[0].percentile(0.5), Distribution(parts[0]).percentile(0.5)) << how;  // asked for in between
    parts[0].merge(parts[1]);
    parts[0].merge(parts[2]);
    std::sort(all.begin(), all.end());
    for (const double p : {0.0, 0.001, 0.01, 0.3, 0.34, 0.5, 0.66, 0.67, 0.9, 0.99, 0.9999, 1.0}) {
      const u64 exact = all[static_cast<std::size_t>(std::max(1.0, std::ceil(p * 20'000 - 1e-9))) - 1];
      EXPECT_EQ(whole.percentile(p), exact) << how << " " << p;
      EXPECT_EQ(parts[0].percentile(p), exact) << how << " " << p;
    }
    EXPECT_FALSE(parts[0].approximate());
  }
}

TEST(Distribution, StaysWithinTwoPercentBeyondAMillion) {
  std::mt19937_64 random(3);
  std::vector<u64> all;
  Distribution whole, left, right;
  for (u64 i = 0; i < 1'200'000; ++i) {
    const u64 value = 1ull << (random() % 34);
    const u64 noisy = value + random() % value;
    all.push_back(noisy);
    whole.add(noisy);
    (i % 2 ? left : right).add(noisy);
  }
  left.merge(right);
  EXPECT_TRUE(whole.approximate());
  EXPECT_TRUE(left.approximate());
  std::sort(all.begin(), all.end());
  u64 sum = 0;
  for (const u64 value : all) sum += value;
  EXPECT_EQ(whole.sum(), sum);
  EXPECT_EQ(left.sum(), sum);
  EXPECT_EQ(left.min(), all.front());
  for (const double p : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = static_cast<double>(all[static_cast<std::size_t>(p * 1'200'000) - 1]);
    EXPECT_NEAR(static_cast<double>(whole.percentile(p)) / exact, 1, 0.02) << p;
    EXPECT_EQ(whole.percentile(p), left.percentile(p)) << p;
  }
}

TEST(Demangle, LongLegalNamesAndHostileOnes) {
  EXPECT_EQ(demangle("_Z5scalePfi"), "scale(float*, int)");
  EXPECT_EQ(demangle("plain_c_name"), "plain_c_name");
  std::string longer = "_Z1fI";  // a template of 600 ints: a legal name of more than 1,024 bytes
  for (int i = 0; i < 600; ++i) longer += "Li1E";
  longer += "Evv";
  EXPECT_GT(longer.size(), 1024u);
  EXPECT_EQ(demangle(longer).compare(0, 10, "void f<1, "), 0);
  const std::string huge = "_Z" + std::string(1 << 20, 'P') + "i";
  EXPECT_EQ(demangle(huge), huge);
  const std::string nested = "_Z1f" + std::string(16000, 'P') + "i";
  EXPECT_FALSE(demangle(nested).empty());  // however it is shown: no overflow
  std::string explosive = "_Z1fIiE";       // each substitution doubles what comes out
  for (char c = '0'; c <= '9'; ++c) explosive += std::string("St4pairIS") + c + "_S" + c + "_E";
  EXPECT_LE(demangle(explosive).size(), kMaxDemangledBytes);
}

TEST(Demangle, RustsNamesWithoutTheirHashes) {
  EXPECT_EQ(demangle("_ZN2rs4step17h74eb45b8f3270a91E"), "rs::step");
  EXPECT_EQ(demangle("_ZN51_$LT$rs..Model$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE"),
            "<rs::Model as core::ops::drop::Drop>::drop");
  EXPECT_EQ(demangle("_RNvCskK7mfDs1mzF_1m4main"), "m::main");
  EXPECT_EQ(demangle("_RNCNvCskK7mfDs1mzF_1m4main0B3_"), "m::main::{closure#0}");
  EXPECT_EQ(demangle("_ZN2rs4step17h7777777777777777E"), "rs::step::h7777777777777777");  // no hash: a name of C++
  EXPECT_EQ(demangle("_Run"), "_Run");
}

TEST(SafeText, NothingReachesTheTerminalAsACommand) {
  EXPECT_EQ(safe_text("a\x1b[31mb\r\a\x7f"), "a\\x1b[31mb\\x0d\\x07\\x7f");
  EXPECT_EQ(safe_text("\x1b]52;c;eA==\x07"), "\\x1b]52;c;eA==\\x07");
  EXPECT_EQ(safe_text("\xe2\x80\xae"
                      "evil"),
            "\\u202eevil");  // right-to-left override
  EXPECT_EQ(safe_text("\xc2\x9b"
                      "31m"),
            "\\x9b31m");                                    // CSI as one character
  EXPECT_EQ(safe_text("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");  // no UTF-8, overlong
  EXPECT_EQ(safe_text("Straße 日本 ✓"), "Straße 日本 ✓");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(display_width("日本"), 4u);
}

TEST(SafeText, ShortensSignaturesByTheirParameters) {
  const std::string name = "void (anonymous namespace)::gemm<float>(float const*, float*, int)";
  EXPECT_EQ(shorten_signature(name, 100, "..."), name);
  EXPECT_EQ(shorten_signature(name, 50, "..."), "void gemm<float>(float const*, float*, int)");
  EXPECT_EQ(shorten_signature(name, 12, "..."), "gemm<float>");
  EXPECT_EQ(display_width(shorten("日本日本日本", 7, "...")), 7u);
}

// The line is what one goes to: the function's name goes before it, then the begin of the file's.
TEST(SafeText, ShortensPlacesToTheirLine) {
  const std::string place = "fused_linear_cross_entropy.py:173 fused_backward", library = "libcustom_kernels.so launch";
  EXPECT_EQ(shorten_site(place, 48, "..."), place);
  EXPECT_EQ(shorten_site(place, 45, "..."), "fused_linear_cross_entropy.py:173 fused_...rd");
  EXPECT_EQ(shorten_site(place, 36, "..."), "fused_linear_cross_entropy.py:173");
  EXPECT_EQ(shorten_site(place, 28, "..."), "...near_cross_entropy.py:173");
  EXPECT_EQ(display_width(shorten_site(place, 28, "…")), 28u);
  EXPECT_EQ(shorten_site("train.py:12", 6, "..."), "...:12");
  EXPECT_EQ(shorten_site(library, 20, "..."), shorten(library, 20, "...")) << "no line is known";
}

TEST(Render, TextNamesUnitsAndWhatIsNotKnown) {
  TextStyle style;
  style.width = 80;
  const std::string text = render_text(small_report(), style);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  for (const char* piece : {"2 processes, 1,234,567 records, 3 dropped", "total ms", "1.235", "share %", "25.0",
                            "1.500 KiB", "not known here: none", "not collected: device: not built", "c\\xff"}) {
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
  }
  for (const std::size_t width : {20u, 40u, 60u}) {
    style.width = width;
    EXPECT_FALSE(render_text(small_report(), style).empty());
  }
}

std::string rendered(Table table, std::size_t width, std::optional<Nanos> origin = std::nullopt) {
  Report report;
  report.tables = {std::move(table)};
  report.origin = origin;
  TextStyle style;
  style.width = width;
  style.utf8 = false;
  const std::string text = render_text(report, style);
  return text.substr(text.find("\n\n") + 2);  // without the coverage
}

TEST(Render, AnEmptyTableSaysWhyAndNotWhatItsColumnsMean) {
  Table table;
  table.title = "Input";
  table.columns = {{"op", Unit::Text}};
  table.notes = {"op = a function", "no rows: nobody looked"};
  table.general_notes = 1;
  table.section = "input-ops";
  Report report;
  report.tables = {table};
  TextStyle style;
  style.sections = {"input-ops"};
  const std::string text = render_text(report, style);
  EXPECT_NE(text.find("Input\n  none\n  no rows: nobody looked\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("op ="), std::string::npos) << text;
}

TEST(Render, InstantsAreTextFromTheFirstRecordOn) {
  Table table;
  table.title = "Gaps";
  table.columns = {{"begin_ns", Unit::Nanos}, {"duration_ns", Unit::Nanos}};
  table.rows = {{i64{22'488'000'001'500}, i64{2000}}};
  EXPECT_NE(rendered(table, 80, 22'488'000'000'000).find("0.000002        2.000"), std::string::npos);
  EXPECT_NE(rendered(table, 80).find("begin s  duration us\n  22488.000002        2.000"), std::string::npos);
}

TEST(Render, ASentenceGoesOnOverSeveralLines) {
  Table table;
  table.title = "Notes";
  table.columns = {{"what", Unit::Text}, {"text", Unit::Text, Hint::Prose}};
  table.rows = {{std::string("code"), std::string("one two three four five six seven eight nine ten")}};
  EXPECT_EQ(rendered(table, 40),
            "Notes\n  what  text\n  code  one two three four five six\n        seven eight nine ten\n\n");
}

TEST(Render, NotesSpeakOfShownColumnsOnly) {
  Table table;
  table.title = "Kernels";
  table.columns = {{"kernel", Unit::Text, Hint::Kernel}, {"total_ns", Unit::Nanos}, {"tensor_core_kind", Unit::Text}};
  table.sort = "total_ns";
  table.rows = {{std::string("void gemm(float*)"), i64{1000}, std::string("a kind that takes all the room")},
                {std::string("a_kernel_with_a_long_name(float*, int)"), i64{10}, {}}};
  table.notes = {"total = on the device; tensor_core_kind = of its code; nothing else",
                 "tensor core kind = of no code"};
  const std::string wide = rendered(table, 120), narrow = rendered(table, 40);
  EXPECT_NE(
      wide.find("  total = on the device; tensor_core_kind = of its code; nothing else\n  tensor core kind = of no"),
      std::string::npos)
      << wide;
  EXPECT_NE(wide.find("void gemm(float*) "), std::string::npos) << wide;
  EXPECT_NE(narrow.find("  total = on the device; nothing else\n  no room for: tensor core kind"), std::string::npos)
      << narrow;
  // One of them is too long for its parameters: then none has them.
  EXPECT_NE(narrow.find("  gemm                       1.000 us\n  a_kernel_with_a_long_name     10 ns\n"),
            std::string::npos)
      << narrow;
}

TEST(Render, OverloadsKeepTheirParameters) {
  Table table;
  table.title = "Kernels";
  table.columns = {{"kernel", Unit::Text, Hint::Kernel}, {"total_ns", Unit::Nanos}};
  table.rows = {{std::string("fill(float*)"), i64{1000}},
                {std::string("fill(int*)"), i64{10}},
                {std::string("a_kernel_with_a_long_name(float*, int)"), i64{10}}};
  const std::string narrow = rendered(table, 40);
  EXPECT_NE(narrow.find("fill(float*) "), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("fill(int*) "), std::string::npos) << narrow;
}

TEST(Render, ColumnsOfOneHeadingAreToldApart) {
  Table table;
  table.title = "Streams";
  table.columns = {{"busy_ns", Unit::Nanos}, {"busy_ratio", Unit::Ratio}, {"peak_ratio", Unit::Ratio}};
  table.rows = {{i64{1000}, 0.5, 0.25}};
  EXPECT_EQ(rendered(table, 80), "Streams\n  busy us  busy ratio %  peak %\n    1.000          50.0    25.0\n\n");
}

TEST(Render, ATableOfNothingKnownIsEmpty) {
  Table table;
  table.title = "Nothing";
  table.columns = {{"a", Unit::Text}};
  table.rows = {{Value()}};
  EXPECT_EQ(rendered(table, 80), "Nothing\n  none\n\n");
}

TEST(Render, MetricsSayWhatTheyAre) {
  Table table;
  table.title = "Overview";
  table.columns = {{"metric", Unit::Text}, {"value", Unit::None}, {"unit", Unit::Text}, {"note", Unit::Text}};
  table.rows = {{std::string("copies"), i64{80}, std::string("count"), Value()},
                {std::string("copy_bytes"), i64{2048}, std::string("bytes"), Value()},
                {std::string("kernel_ns"), i64{2000}, std::string("ns"), Value()},
                {std::string("exposed_copy_ns"), i64{3000}, std::string("ns"), Value()}};
  const std::string text = rendered(table, 80);
  for (const char* line : {"  copies ", "  copy bytes ", "  kernel time ", "  exposed copy "})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Render, OneIsNoPlural) {
  EXPECT_EQ(counted(1, "error"), "1 error");
  EXPECT_EQ(counted(0, "error"), "0 errors");
  EXPECT_EQ(counted(2014, "record"), "2,014 records");
}

TEST(Render, LargeCountsHaveFourDigits) {
  EXPECT_EQ(human_large(i64{989'123'456'789'012}), "989.1 T");
  EXPECT_EQ(human_large(i64{2'147'483'648}), "2.147 G");
  EXPECT_EQ(human_large(i64{999'960}), "1.000 M");
  EXPECT_EQ(human_large(i64{999}), "999");
  EXPECT_EQ(human_large(i64{0}), "0");
}

TEST(Render, JsonIsNullWhereTextHasADash) {
  const auto json = nlohmann::json::parse(render_json(small_report()));
  EXPECT_EQ(json["schema"], "gputrace-report/1");
  EXPECT_EQ(json["coverage"]["dropped"], 3);
  EXPECT_EQ(json["coverage"]["device_timing"], "none");
  EXPECT_EQ(json["coverage"]["not_collected"][0]["what"], "device");
  const auto& rows = json["sections"]["things"]["rows"];
  EXPECT_EQ(rows[0]["total_ns"], 1234567);
  EXPECT_EQ(rows[0]["share"], 0.25);
  EXPECT_TRUE(rows[1]["total_ns"].is_null());
  EXPECT_EQ(rows[1]["bytes"], 0);
  EXPECT_EQ(rows[1]["name"], "c\xef\xbf\xbd");
  EXPECT_EQ(json["sections"]["things"]["columns"][1]["unit"], "ns");
}

TEST(Render, CsvQuotesAndLeavesNullEmpty) {
  EXPECT_EQ(render_csv(small_report().tables[0]),
            "name,total_ns,bytes,share,none\r\n\"a,\"\"b\"\"\\x0a\\x1b[2J\",1234567,1536,0.25,\r\nc\\xff,,0,,\r\n");
}

TEST(Render, CsvHoldsNoFormula) {
  Table table;
  table.columns = {{"name", Unit::Text, Hint::Name}, {"left", Unit::Count}};
  for (const char* name : {"=1+1", "+1", "-1", "@now()", "a=b", "\t=1"})
    table.rows.push_back({std::string(name), i64{-1}});
  EXPECT_EQ(render_csv(table), "name,left\r\n'=1+1,-1\r\n'+1,-1\r\n'-1,-1\r\n'@now(),-1\r\na=b,-1\r\n\\x09=1,-1\r\n");
}

Table kernels_table() {
  Table table;
  table.section = "kernels", table.title = "Kernels";
  table.columns = {{"kernel", Unit::Text, Hint::Kernel},
                   {"total_ns", Unit::Nanos},
                   {"share", Unit::Ratio},
                   {"launches", Unit::Count},
                   {"tensor_core", Unit::Boolean},
                   {"symbol", Unit::Text, Hint::Detail}};
  table.rows = {{std::string("Gemm_a"), i64{5000}, 0.5, i64{10}, true, std::string("_a")},
                {std::string("gemm_b"), i64{3000}, 0.3, i64{2}, false, std::string("_b")},
                {std::string("relu"), {}, {}, i64{7}, {}, std::string("_r")}};
  return table;
}

std::vector<std::string> kept(const std::string& condition) {
  Table table = kernels_table();
  const auto filter = parse_filter(condition);
  if (!filter) return {filter.error().message};
  keep_rows(table, filter.value());
  std::vector<std::string> names;
  for (const Row& row : table.rows) names.push_back(std::get<std::string>(row[0]));
  return names;
}

TEST(Choose, RowsByACondition) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(kept("kernel~GEMM"), (Names{"Gemm_a", "gemm_b"}));
  EXPECT_EQ(kept("kernel!~gemm"), (Names{"relu"}));
  EXPECT_EQ(kept("kernel = relu"), (Names{"relu"}));
  EXPECT_EQ(kept("total_ns>=5us"), (Names{"Gemm_a"}));
  EXPECT_EQ(kept("total<5000"), (Names{"gemm_b"}));  // what is not known agrees with nothing
  EXPECT_EQ(kept("share>30%"), (Names{"Gemm_a"}));
  EXPECT_EQ(kept("share>=0.3"), (Names{"Gemm_a", "gemm_b"}));
  EXPECT_EQ(kept("launches!=7"), (Names{"Gemm_a", "gemm_b"}));
  EXPECT_EQ(kept("tensor core=yes"), (Names{"Gemm_a"}));
  EXPECT_EQ(kept("total="), (Names{"relu"}));
  EXPECT_EQ(kept("total!="), (Names{"Gemm_a", "gemm_b"}));
  EXPECT_NE(kept("kernel")[0].find("is no condition"), std::string::npos);
  EXPECT_NE(kept("kernel!gemm")[0].find("stands before"), std::string::npos);
  const Column time{"total_ns", Unit::Nanos};
  EXPECT_FALSE(wrong_value(parse_filter("total>1ms").value(), time));
  EXPECT_NE(wrong_value(parse_filter("total>soon").value(), time)->find("units: ns us ms"), std::string::npos);
}

TEST(Choose, ColumnsByKeyOrHeading) {
  Table table = kernels_table();
  EXPECT_EQ(find_column(table.columns, "Total"), 1);
  EXPECT_EQ(find_column(table.columns, "tensor core"), 4);
  EXPECT_EQ(find_column(table.columns, "nothing"), -1);
  EXPECT_FALSE(keep_columns(table, {"nothing"}));
  EXPECT_TRUE(keep_columns(table, {"symbol", "total", "nothing"}));
  EXPECT_EQ(rendered(table, 80),
            "Kernels\n  symbol  total us\n  _a         5.000\n  _b         3.000\n  _r             -\n\n");
}

TEST(Render, WideCutsNothing) {
  Table table = kernels_table();
  const std::string name(200, 'k');
  table.rows[0][0] = name;
  Report report;
  report.tables = {table};
  TextStyle style;
  style.width = 60;
  EXPECT_EQ(render_text(report, style).find(name), std::string::npos);
  style.wide = true;
  EXPECT_NE(render_text(report, style).find(name), std::string::npos);
}

Report run_of(const std::vector<i64>& steps, const std::vector<std::pair<std::string, i64>>& kernels) {
  Report report;
  Table step_table;
  step_table.section = "steps";
  step_table.columns = {{"step", Unit::Count}, {"duration_ns", Unit::Nanos}};
  for (const i64 length : steps) step_table.rows.push_back({number(step_table.rows.size()), length});
  Table kernel_table;
  kernel_table.section = "kernels";
  kernel_table.columns = {{"kernel", Unit::Text}, {"total_ns", Unit::Nanos}, {"launches", Unit::Count}};
  for (const auto& [name, total] : kernels) kernel_table.rows.push_back({name, total, i64{10}});
  report.tables = {step_table, kernel_table};
  return report;
}

TEST(Diff, ADifferenceIsToldBeyondTheSpreadOnly) {
  const std::vector<i64> around = {980, 990, 1000, 1010, 1020, 995, 1005, 1000, 1000};
  std::vector<i64> slower, hardly;
  for (const i64 length : around) slower.push_back(length + 200), hardly.push_back(length + 5);
  const Diff far = diff_of(run_of(around, {}), run_of(slower, {})),
             near = diff_of(run_of(around, {}), run_of(hardly, {}));
  EXPECT_EQ(far.change.what, "step");
  EXPECT_TRUE(far.change.told());
  EXPECT_NEAR(far.change.ratio(), 0.2, 1e-9);
  EXPECT_FALSE(near.change.told());
}

TEST(Diff, KernelsAreMatchedAndCountedByStep) {
  const Diff diff = diff_of(run_of({100, 100, 100, 100}, {{"same", 4000}, {"old", 400}}),
                            run_of({90, 90, 90, 90}, {{"same", 2000}, {"fresh", 2400}}));
  EXPECT_TRUE(diff.per_step);
  const Table* kernels = diff.report.table("kernels");
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->rows.size(), 3u);
  EXPECT_EQ(kernels->rows[0], (Row{std::string("fresh"), {}, i64{600}, i64{600}, {}, {}, i64{3}, std::string("new")}));
  EXPECT_EQ(kernels->rows[1],
            (Row{std::string("same"), i64{1000}, i64{500}, i64{-500}, -0.5, i64{3}, i64{3}, std::string("both")}));
  EXPECT_EQ(kernels->rows[2], (Row{std::string("old"), i64{100}, {}, i64{-100}, {}, i64{3}, {}, std::string("gone")}));
}

TEST(Wrapped, ANumberKeepsItsPercent) {
  EXPECT_EQ(wrapped("", "aaaa bbbb 54 % of", 0, 24), "aaaa bbbb 54 % of\n");
  EXPECT_EQ(wrapped("", "aaaa bbbb cccc ddd 54 % of", 0, 21), "aaaa bbbb cccc ddd\n54 % of\n");
}

TEST(Table, SortsLargestFirstAndNullLast) {
  Table table = small_report().tables[0];
  table.rows.push_back({std::string("d"), i64{2'000'000}, {}, {}, {}});
  EXPECT_TRUE(sort_table(table, "total_ns"));
  EXPECT_EQ(std::get<std::string>(table.rows[0][0]), "d");
  EXPECT_TRUE(is_null(table.rows[2][1]));
  EXPECT_FALSE(sort_table(table, "nothing"));
}

// Kernels whose names differ where there is no room for them.
TEST(RenderText, NoTwoKernelsPrintTheSameName) {
  Table table;
  table.section = "kernels", table.title = "Kernels";
  table.columns = {{"name", Unit::Text, Hint::Name}, {"symbol", Unit::Text, Hint::Detail}};
  const std::string same(60, 'k');
  for (const char* tail : {"a", "b", "a", "c"}) table.rows.push_back({same + tail, same + tail});
  TextStyle style;
  style.width = 30, style.utf8 = true;
  Report report;
  report.tables.push_back(table);
  const std::string text = render_text(report, style);
  std::vector<std::string> lines;
  for (std::size_t at = text.find("  kkk"); at != std::string::npos; at = text.find("  kkk", at + 1))
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  ASSERT_EQ(lines.size(), 4u) << text;
  EXPECT_EQ(lines[0], lines[2]);
  EXPECT_EQ((std::set<std::string>{lines[0], lines[1], lines[3]}.size()), 3u) << text;
}

}  // namespace
}  // namespace gputrace
