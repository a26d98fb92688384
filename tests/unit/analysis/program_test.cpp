// What a person calls a traced process.
#include "analysis/run/program.h"

#include <gtest/gtest.h>

#include "tests/unit/trace_builder.h"

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

// A process that multiprocessing started anew is called by what it runs, also where a package stands between (torch.multiprocessing.spawn).
TEST(ProgramName, IsThatOfTheFunctionsFileThatASpawnedProcessRuns) {
  const std::string library = "/usr/lib/python3.11/multiprocessing/", packages = "/v/lib/python3.11/site-packages/";
  ProcessTrace process;
  process.who.executable = "/usr/bin/python3.11";
  process.who.command =
      "python -c 'from multiprocessing.spawn import spawn_main; spawn_main(…)' --multiprocessing-fork";
  const auto named = [&](const std::vector<std::string>& files) {
    process.lines.frames.assign(1, {});
    for (u32 i = 0; i < files.size(); ++i) {
      SourceFrame& frame = process.lines.frames.emplace_back();
      frame.file = files[i], frame.parent = i;
      frame.function = files[i] == library + "process.py" ? "BaseProcess._bootstrap" : "f";
    }
    return program_name(process);
  };
  EXPECT_EQ(named({"<string>", library + "spawn.py", library + "process.py", "/home/me/ddp.py"}),
            "ddp.py (multiprocessing)");
  EXPECT_EQ(
      named({"<string>", library + "spawn.py", library + "process.py", packages + "torch/multiprocessing/spawn.py",
             "/home/me/ddp.py", "/home/me/model.py", packages + "torch/nn/modules/module.py"}),
      "ddp.py (multiprocessing)");
  EXPECT_EQ(named({"<string>", library + "spawn.py", library + "process.py", packages + "engine/core.py"}),
            "python (multiprocessing)");
}

// As setproctitle leaves them: the title, then a zero for each byte that the arguments took more.
TEST(ProgramName, IsTheTitleThatWasWrittenOverTheArguments) {
  const auto identity = [](const std::string& arguments) {
    test::TraceBuilder trace;
    trace.thread(100);
    trace.info("executable", "/usr/bin/python3.11");
    trace.info("argv", arguments);
    return trace.load_all().processes.at(0);
  };
  const ProcessTrace worker = identity("ray::Trainer.fit\x1f\x1f\x1f\x1f");
  EXPECT_EQ(worker.who.command, "ray::Trainer.fit");
  EXPECT_EQ(program_name(worker), "ray::Trainer.fit");
  EXPECT_EQ(program_name(identity("gunicorn: worker [app:app]")), "gunicorn: worker [app:app]");
  EXPECT_EQ(program_name(identity("/opt/bin/python3")), "python3.11");
  EXPECT_LE(program_name(identity(std::string(30, 'a') + std::string(1000, ' ') + std::string(30, 'b'))).size(), 52u);
  EXPECT_EQ(identity("python\x1f-c\x1f\x1f\"x").who.command, "python -c '' '\"x'");
}

}  // namespace
}  // namespace gputrace
