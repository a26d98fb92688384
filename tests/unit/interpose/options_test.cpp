// What is read from GPUTRACE_* variables: values, warnings, ranks.
#include "interpose/settings/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "interpose/settings/environment.h"

namespace gputrace {
namespace {

TEST(ParseSize, TakesBinaryUnits) {
  Bytes bytes = 0;
  EXPECT_TRUE(parse_size("16M", bytes));
  EXPECT_EQ(bytes, 16u << 20);
  EXPECT_TRUE(parse_size("512K", bytes));
  EXPECT_EQ(bytes, 512u << 10);
  EXPECT_TRUE(parse_size("1.5G", bytes));
  EXPECT_EQ(bytes, 1536ull << 20);
  EXPECT_TRUE(parse_size("4096", bytes));
  EXPECT_EQ(bytes, 4096u);
  for (const char* bad : {"", "M", "-1", "16X", "1e3", "16M ", "0x10", "99999999999999999999G"})
    EXPECT_FALSE(parse_size(bad, bytes)) << bad;
}

TEST(ParseDuration, TakesEveryUnitAndBareSeconds) {
  Nanos nanos = 0;
  const std::pair<const char*, Nanos> cases[] = {{"30s", 30'000'000'000}, {"500ms", 500'000'000},
                                                 {"5m", 300'000'000'000}, {"1h", 3'600'000'000'000},
                                                 {"10us", 10'000},        {"7ns", 7},
                                                 {"2", 2'000'000'000},    {"0.5", 500'000'000}};
  for (const auto& [text, expected] : cases) {
    EXPECT_TRUE(parse_duration(text, nanos)) << text;
    EXPECT_EQ(nanos, expected) << text;
  }
  for (const char* bad : {"", "s", "5 s", "5d", "-5s", "99999999999h"}) EXPECT_FALSE(parse_duration(bad, nanos)) << bad;
}

TEST(RankSelected, TakesListsRangesAndLocalRanks) {
  bool valid = false;
  EXPECT_TRUE(rank_selected("0,8-15", {8, 0}, valid));
  EXPECT_TRUE(rank_selected("0,8-15", {15, 7}, valid));
  EXPECT_FALSE(rank_selected("0,8-15", {7, 7}, valid));
  EXPECT_TRUE(valid);
  EXPECT_TRUE(rank_selected("local0", {96, 0}, valid));
  EXPECT_FALSE(rank_selected("local0", {0, 1}, valid));
  EXPECT_FALSE(rank_selected("0", {-1, -1}, valid)) << "a process without a rank is not rank 0";
  EXPECT_TRUE(valid);
  for (const char* bad : {"", "a", "1-", "1,,2", "1;2"}) {
    rank_selected(bad, {1, 1}, valid);
    EXPECT_FALSE(valid) << bad;
  }
}

// One process, one environment: the copy is taken once, as in the traced process.
TEST(ReadOptions, WarnsOncePerMistakeAndGoesOnWithDefaults) {
  const char* variables[] = {"GPUTRACE_BUFFER=lots",
                             "GPUTRACE_BUFER=1M",
                             "GPUTRACE_DURATION=30s",
                             "GPUTRACE_COLLECT=api,counters,nonsense",
                             "GPUTRACE_CAPTURE=profiler-api",
                             "PATH=/bin",
                             "GPUTRACE_RUN=x",
                             "GPUTRACE_ON_FULL=overwrite",
                             nullptr};
  char** const before = environ;
  environ = const_cast<char**>(variables);
  copy_environment();
  environ = before;
  char text[8192];
  InfoText info(text, sizeof text);
  const Options options = read_options(info);
  EXPECT_EQ(options.buffer, 16u << 20);
  EXPECT_EQ(options.duration_ns, 30'000'000'000);
  EXPECT_EQ(options.delay_ns, 0);
  EXPECT_EQ(options.capture, CaptureMode::ProfilerApi);
  EXPECT_EQ(options.on_full, OnFull::Overwrite);
  EXPECT_TRUE(options.enabled);
  EXPECT_TRUE(options.collect_any);
  const std::string lines(info.data(), info.size());
  EXPECT_NE(lines.find("GPUTRACE_BUFER is not a variable of gputrace; it is ignored. Nearest: GPUTRACE_BUFFER"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("GPUTRACE_BUFFER=lots cannot be used"), std::string::npos) << lines;
  EXPECT_NE(lines.find("'nonsense'"), std::string::npos) << lines;
  EXPECT_NE(lines.find("not_collected\tcounters: not built in this version"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("GPUTRACE_RUN is not"), std::string::npos) << lines;
  std::size_t warnings = 0;
  for (std::size_t at = 0; (at = lines.find("option_warning\t", at)) != std::string::npos; ++at) ++warnings;
  EXPECT_EQ(warnings, 3u) << lines;
}

TEST(Options, Steps) {
  u32 first = 0, last = 0;
  EXPECT_TRUE(parse_steps("5-9", first, last));
  EXPECT_EQ(first, 5u);
  EXPECT_EQ(last, 9u);
  EXPECT_TRUE(parse_steps("7", first, last));
  EXPECT_EQ(first, 7u);
  EXPECT_EQ(last, 7u);
  for (const char* bad : {"", "-", "5-", "-5", "0", "0-3", "3-2", "5-9x", "a", "5-9-12", "99999999999999999999-1"})
    EXPECT_FALSE(parse_steps(bad, first, last)) << bad;
}

TEST(InfoText, EscapesAndCutsAtLineBorders) {
  char text[32];
  InfoText info(text, sizeof text);
  info.add("key", "a\tb\nc\\d");
  EXPECT_EQ(std::string(info.data(), info.size()), "key\ta\\tb\\nc\\\\d\n");
  info.add("long", "does not fit into what is left of it");
  EXPECT_EQ(std::string(info.data(), info.size()), "key\ta\\tb\\nc\\\\d\n");
}

}  // namespace
}  // namespace gputrace
