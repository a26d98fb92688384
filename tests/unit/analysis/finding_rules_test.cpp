// What rules say of themselves: what they need, and which findings are theirs.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "analysis/findings/rules.h"

namespace gputrace {
namespace {

// One process, of which nothing is known but what was asked for, and whether its device reported.
LoadedRun asked_for_parts(const std::string& collect, bool device = false) {
  LoadedRun run;
  ProcessTrace& process = run.processes.emplace_back();
  process.options["collect"] = collect;
  process.device.collected = device;
  return run;
}

bool is_found(const LoadedRun& run, const std::string& id) {
  for (const Finding& finding : find_findings(run)) {
    if (finding.id == id) return true;
  }
  return false;
}

TEST(FindingRules, AreAskedOnlyWhereTheirNeedsAreMet) {
  const FindingRule rule = {
      .findings = {{"always", ""}},
      .needs = {Need::Calls, Need::Device},
      .find =
          [](const LoadedRun&, Findings& found) {
            found.push_back({"always", Severity::Hint, "api", "", "", {}});
          },
  };
  Findings found;
  ask(rule, asked_for_parts("api"), found);
  ask(rule, asked_for_parts("nvtx", true), found);
  EXPECT_TRUE(found.empty());
  ask(rule, asked_for_parts("api", true), found);
  EXPECT_EQ(found.size(), 1u);
}

TEST(FindingRules, AFindingThatTheRuleDoesNotDeclareIsAnError) {
  const FindingRule rule = {
      .findings = {{"declared", ""}},
      .needs = {},
      .find =
          [](const LoadedRun&, Findings& found) {
            found.push_back({"other", Severity::Hint, "api", "", "", {}});
          },
  };
  Findings found;
  EXPECT_THROW(ask(rule, LoadedRun{}, found), std::logic_error);
}

TEST(FindingRules, NoTwoDeclareTheSameFinding) {
  std::set<std::string> ids;
  for (const FindingRule* rule : all_rules()) {
    for (const FindingKind& kind : rule->findings) EXPECT_TRUE(ids.insert(kind.id).second) << kind.id;
  }
}

TEST(FindingRules, AFileThatCouldNotBeReadIsSaid) {
  LoadedRun run = asked_for_parts("api");
  EXPECT_FALSE(is_found(run, "unread-file"));
  run.unread = {"torn.gtrace: not a trace"};
  EXPECT_TRUE(is_found(run, "unread-file"));
}

// Where calls were not collected, nothing can be said of a program that makes none.
TEST(FindingRules, NoCudaCallIsSaidOnlyWhereCallsWereCollected) {
  EXPECT_TRUE(is_found(asked_for_parts("api"), "no-cuda-call"));
  EXPECT_FALSE(is_found(asked_for_parts("nvtx"), "no-cuda-call"));
}

}  // namespace
}  // namespace gputrace
