// What a person calls a traced process.
#include "analysis/run/program.h"

#include <gtest/gtest.h>

namespace gputrace {
namespace {

std::string name(const std::string& executable, const std::string& command) {
  ProcessTrace process;
  process.who.executable = executable, process.who.command = command;
  process.lines.frames.emplace_back();
  return program_name(process);
}

TEST(ProgramName, IsThatOfTheScriptOrModule) {
  const std::string python = "/usr/bin/python3.11", packages = "/v/lib/python3.11/site-packages/";
  EXPECT_EQ(name("/opt/bin/solver", "/opt/bin/solver --mesh a.msh"), "solver");
  EXPECT_EQ(name(python, "python train.py --lr 1"), "train.py");
  EXPECT_EQ(name(python, "python -u -X dev /home/me/train.py"), "train.py");
  EXPECT_EQ(name(python, "python -m pytest tests"), "python -m pytest");
  EXPECT_EQ(name(python, "python -c import torch"), "python -c");
  EXPECT_EQ(name(python, "python"), "python3.11");
  EXPECT_EQ(name(python, "python " + packages + "torch/_inductor/compile_worker/__main__.py --workers=2"),
            "python -m torch._inductor.compile_worker");
  EXPECT_EQ(name(python, "python /home/me/app/__main__.py"), "app");
}

}  // namespace
}  // namespace gputrace
