// The first screen.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/analysis/small_report.h"

namespace gputrace {
namespace {

Finding long_finding(u64 gain, const std::string& word) {
  Finding finding;
  finding.id = "f";
  for (int i = 0; i < 70; ++i) finding.text += word + " ";
  finding.text += "end-of-" + word;
  finding.fix = "do " + word;
  finding.gain_ns = gain;
  return finding;
}

TEST(Screen, LeavesFindingsOutWholeWhereTheyDoNotFit) {
  Report report = small_report();
  report.coverage.dropped = 0;
  for (const auto& [gain, word] : {std::pair{1000u, "small"}, {9000u, "large"}, {5000u, "middle"}})
    report.findings.push_back(long_finding(gain, word));
  ScreenStyle style;
  style.width = 50;
  std::string text = render_screen(report, style);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << text;
  EXPECT_LT(text.find("end-of-large"), text.find("end-of-middle")) << text;
  EXPECT_NE(text.find("end-of-middle"), std::string::npos) << text;
  EXPECT_NE(text.find("(2 of 3, by gain)"), std::string::npos) << text;
  EXPECT_EQ(text.find("small"), std::string::npos) << text;
  style.head = true;
  text = render_screen(report, style);
  EXPECT_NE(text.find("do large"), std::string::npos) << text;
  EXPECT_EQ(text.find("middle"), std::string::npos) << text;
}

// Rules are silent where too much is not known: then it is not said that nothing would help.
TEST(Screen, NothingIsFoundWhereTooMuchIsNotKnown) {
  const auto says = [](u64 unknown) {
    Report report = small_report();
    Table overview;
    overview.section = "overview";
    overview.columns = {{"metric", Unit::Text}, {"value", Unit::Count}, {"unit", Unit::Text}, {"note", Unit::Text}};
    for (const auto& [metric, value] : {std::pair{"device_span_ns", u64{1000}}, {"unknown_ns", unknown}})
      overview.rows.push_back({std::string(metric), static_cast<i64>(value), std::string("ns"), std::string()});
    report.tables.push_back(overview);
    return render_screen(report, {});
  };
  EXPECT_NE(says(40).find("nothing was found; of 4.0 % of the devices' time it is not known"), std::string::npos)
      << says(40);
  EXPECT_NE(says(5).find("nothing was found that would make it faster"), std::string::npos) << says(5);
}

// Three that launching less would mend are one change; what else there is to do comes before the second of them.
TEST(Screen, WhatTellsOfTheSameChangeComesLater) {
  Report report = small_report();
  for (const auto& [gain, word] : {std::pair{9000u, "first"}, {9000u, "again"}, {500u, "other"}}) {
    report.findings.push_back(long_finding(gain, word));
    report.findings.back().evidence = {{"pid", i64{7}}};
  }
  report.findings.push_back(long_finding(9000, "elsewhere"));
  report.findings.back().evidence = {{"pid", i64{8}}};
  ScreenStyle style;
  style.width = 120;
  const std::string text = render_screen(report, style);
  const std::size_t places[] = {text.find("end-of-first"), text.find("end-of-elsewhere"), text.find("end-of-other")};
  EXPECT_TRUE(places[0] < places[1] && places[1] < places[2] && places[2] != std::string::npos) << text;
  EXPECT_EQ(text.find("end-of-again"), std::string::npos) << "three are shown";
}

// Where all gain was taken from a finding since no work of the program's can bring it, another one stands first: what explains it is said.
TEST(Screen, AProgramThatIsAskedTooSeldom) {
  Report report = small_report();
  Finding gaps = long_finding(10, "gap");
  gaps.id = "idle-gaps";
  gaps.evidence = {{"device", i64{1}},
                   {"span_ns", i64{2'000'000}},
                   {"outside_ns", i64{1'500'000}},
                   {"waits_in", std::string("queue.py Queue.get")},
                   {"waits_at", std::string("serve.py:20 serve")}};
  report.findings = {long_finding(1000, "other"), gaps};
  ScreenStyle style;
  style.width = 120;
  const std::string told =
      "     1.500 ms of 2.000 ms device 1 has nothing to do, since the program waits for what comes from outside "
      "(queue.py\n     Queue.get, at serve.py:20 serve)\n";
  EXPECT_NE(render_screen(report, style).find(told), std::string::npos) << render_screen(report, style);
  report.findings.front().gain_ns = 1;  // the finding itself says it
  EXPECT_EQ(render_screen(report, style).find(told), std::string::npos);
  report.findings = {long_finding(1000, "other"), gaps};
  report.findings.back().evidence.erase(report.findings.back().evidence.begin() + 2);
  EXPECT_EQ(render_screen(report, style).find("from outside"), std::string::npos);
}

Table table_of(const char* section, std::vector<Column> columns, std::vector<Row> rows) {
  Table table;
  table.section = section;
  table.columns = std::move(columns);
  table.rows = std::move(rows);
  return table;
}

// The numbers of a loop say little of a run that is start-up; the line that waits longer than the loop takes is outside of it.
TEST(Screen, ARunThatIsMostlyStartUpSaysSo) {
  const auto said = [](i64 start, i64 idle, i64 devices = 1) {
    Report report = small_report();
    report.tables = {
        table_of("overview", {{"metric", Unit::Text}, {"value", Unit::Count}, {"note", Unit::Text}},
                 {{std::string("loop_ns"), i64{2'000'000'000}, {}}, {std::string("devices"), devices, {}}}),
        table_of("phases", {{"phase", Unit::Text}, {"duration_ns", Unit::Nanos}, {"pid", Unit::Count}},
                 {{std::string("start-up"), start, i64{7}},
                  {std::string("training"), i64{2'000'000'000}, i64{7}},
                  {std::string("other"), i64{1'000'000'000}, i64{7}}}),
        table_of("sites", {{"site", Unit::Text}, {"idle_ns", Unit::Nanos}},
                 {{std::string("train.py:9 step"), i64{1'900'000'000}}, {std::string("train.py:2 main"), idle}})};
    ScreenStyle style;
    style.width = 120;
    return render_screen(report, style);
  };
  EXPECT_NE(
      said(7'000'000'000, 6'000'000'000)
          .find("Run      start-up 70 %   training 20 %   other 10 %   of 10.00 s; the device waits longest outside "
                "of the loop: 6.000 s\n         at train.py:2 main\n"),
      std::string::npos)
      << said(7'000'000'000, 6'000'000'000);
  EXPECT_NE(said(7'000'000'000, 1'950'000'000).find("of 10.00 s\n"), std::string::npos) << "it may be of the loop";
  EXPECT_NE(said(7'000'000'000, 6'000'000'000, 2).find("of 10.00 s\n"), std::string::npos) << "a sum of two devices";
  EXPECT_EQ(said(2'000'000'000, 2'500'000'000).find("Run "), std::string::npos) << "two fifths";
}

TEST(Screen, LossAndWhatWasNotMeasuredAreSaid) {
  Report report = small_report();
  report.coverage.missing = {"3 records were dropped"};
  ScreenStyle style;
  style.next = {"gputrace report --all"};
  const std::string text = render_screen(report, style);
  EXPECT_NE(text.find("Trace    1,234,567 records, 3 dropped, incomplete: 3 records were dropped\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("Absent   device (why: --section quality)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("next:  gputrace report --all\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("Device "), std::string::npos) << text;  // nothing about it is in the tables
}

// Without Python no line is known unless native ones were asked for: said once, where it would stand.
TEST(Screen, WhereNoLineIsKnownItSaysHowToHaveThem) {
  Report report = small_report();
  report.findings = {long_finding(1000, "other"), long_finding(900, "second")};
  const std::string told = "at a line that is not known: `gputrace run --collect +stacks` tells it\n";
  const auto times = [&] {
    const std::string text = render_screen(report, {});
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(told, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(times(), 0u);
  report.coverage.not_collected.push_back(
      {"sites", "no CPython in this process; GPUTRACE_COLLECT=+stacks tells native lines"});
  EXPECT_EQ(times(), 1u);
  report.findings.front().site = "heat.cu:4 main";
  EXPECT_EQ(times(), 0u);
}

// 300 products on the device, and 150,000 of the same name on the host, by what loads its data.
TEST(Screen, OperationsOfTheHostAloneAreNotCountedAmongThoseOfTheDevice) {
  Report report = small_report();
  Table ops;
  ops.section = "ops";
  ops.columns = {{"op"}, {"device_self_ns", Unit::Nanos}, {"count", Unit::Count}, {"share", Unit::Ratio}};
  ops.rows = {{std::string("aten::mul"), i64{6'000'000}, i64{300}, 0.9},
              {std::string("aten::mul"), i64{0}, i64{150'000}, 0.0},
              {std::string("aten::to"), i64{0}, i64{150'000}, 0.0}};
  report.tables.push_back(ops);
  const std::string text = render_screen(report, {});
  const std::size_t at = text.find("aten::mul");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(at, text.find('\n', at) - at);
  EXPECT_NE(line.find(" 300 "), std::string::npos) << line;
  EXPECT_NE(line.find("20.00 us"), std::string::npos) << line;
  EXPECT_EQ(text.find("aten::to"), std::string::npos) << text;
}

}  // namespace
}  // namespace gputrace
