// Every trace of tests/corpus reads as it did when it was made: one small trace per release, kept for ever. GT_CORPUS
// names the folder.
#include <cstdlib>

#include "analysis/report.h"
#include "tests/unit/trace_builder.h"

namespace gputrace::test {
namespace {

std::map<std::string, Value> metrics(const Report& report) {
  std::map<std::string, Value> found;
  for (const Row& row : report.table("overview")->rows) found[std::get<std::string>(row[0])] = row[1];
  return found;
}

TEST(Corpus, Version0_1_0) {
  const char* folder = std::getenv("GT_CORPUS");
  ASSERT_NE(folder, nullptr);
  LoadRequest request;
  request.files = {std::string(folder) + "/0.1.0-train.gtrace"};
  const auto loaded = load_run(request);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Report report = make_report(loaded.value(), {});
  EXPECT_EQ(report.coverage.records, 1310u);
  EXPECT_EQ(report.coverage.unknown_records, 0u);
  EXPECT_FALSE(report.coverage.truncated);
  auto found = metrics(report);
  EXPECT_EQ(found["launches"], whole(182));
  EXPECT_EQ(found["kernels"], whole(202));
  EXPECT_EQ(found["copies"], whole(80));
  EXPECT_EQ(found["calls"], whole(1284));
  EXPECT_EQ(report.table("kernels")->rows.size(), 12u);
  EXPECT_EQ(report.table("graphs")->rows.size(), 1u);
}

}  // namespace
}  // namespace gputrace::test
