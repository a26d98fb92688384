// Nodes of graphs by what captured them: hand-made records, and what they must not be taken for.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

// Two nodes of one kernel, captured within two operations, at lines of their own; the graph is replayed twice from a third line.
class Captured : public DeviceBuilder {
 public:
  explicit Captured(bool nodes_named = true) : nodes_named_(nodes_named) {
    name_function(0xf1, "node", 0xa0);
    name_ = text("node");
    for (u32 id = 1; id <= 3; ++id) frame(id, "main", "train.py", 10 * id);
    frame(4, "aten::mm", "", 0);
    frame(5, "aten::sum", "", 0);
    reading(50);
  }
  void at_stack(Nanos at, u32 line, u32 operation) {
    add<Stack>(main_, "", at, at, [&](auto& r) { r.frame = line, r.frames = 1, r.operation = operation; });
  }
  void capture(Nanos at, u64 node, u64 capture = 1) {
    add<CapturedNode>(main_, "", at, at, [&](auto& r) { r.graph = 0x61, r.node = node, r.capture = capture; });
  }
  void gone(Nanos at) {
    add<ObjectCall>(main_, "cuGraphDestroy", at, at + 1, [](auto& r) {
      r.object = 0x61, r.kind = static_cast<u32>(ObjectKind::Graph), r.what = static_cast<u32>(ObjectAct::Destroyed);
    });
  }
  void instantiate(Nanos at, u32 flags = 0) {
    add<GraphInstantiate>(main_, "cuGraphInstantiate", at, at + 50, [&](auto& r) {
      r.graph = 0x61, r.exec = 0x62, r.nodes = 2, r.kernel_nodes = 2, r.flags = flags;
    });
    for (u64 i = 0; i < 2; ++i) {
      add<GraphNode>(main_, "cuGraphInstantiate", at, at + 50, [&](auto& r) {
        r.exec = 0x62, r.node = 0x70 + i, r.function = 0xf1, r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256;
        r.block_y = r.block_z = 1;
      });
      if (nodes_named_ && flags == 0)
        add<DeviceGraphNode>(definitions(), "", at + 51, at + 51,
                             [&](auto& r) { r.exec = 0x62, r.graph = 5, r.node = 0x70 + i, r.id = 900 + i; });
    }
    add<DeviceGraphNode>(definitions(), "", at + 51, at + 51, [](auto& r) { r.exec = 0x62, r.graph = 5; });
  }
  ProcessTrace replayed_twice() {
    at_stack(990, 3, 0);
    for (u32 i = 0; i < 2; ++i) {
      const Nanos at = 1000 + 2000 * i;
      add<GraphLaunch>(main_, "cuGraphLaunch", at, at + 100, [](auto& r) { r.exec = 0x62, r.context = 0xc0; });
      key(100, 20 + i, at + 5, at + 95, 6000, kCallback_cuGraphLaunch);
      kernel(20 + i, name_, at + 300, at + 400, 6000, 7, 8, 5, 900);
      kernel(20 + i, name_, at + 450, at + 700, 6000, 7, 8, 5, 901);
    }
    reading(7000);
    return load();
  }

 private:
  void frame(u32 id, const std::string& function, const std::string& file, u32 line) {
    const u64 name = text(function), path = file.empty() ? 0 : text(file);
    add<StackFrame>(definitions(), "", 5, 5,
                    [&](auto& r) { r.function = name, r.file = path, r.id = id, r.line = line; });
  }

  const bool nodes_named_;
  const Thread main_ = thread(100);
  u64 name_ = 0;
};

// Device time and replayed kernels by operation (a frame's number) and by line.
struct Sums {
  std::map<u32, u64> device, replayed, of_kernels;
};
Sums sums_of(const ProcessTrace& process) {
  Sums sums;
  const SourceLines& lines = process.lines;
  for (u32 i = 0; i < lines.times.size(); ++i) {
    if (lines.times[i].device_ns) sums.device[lines.origins[i].frame] += lines.times[i].device_ns;
  }
  for (const KernelOrigin& pair : lines.replayed) sums.replayed[lines.origins[pair.origin].frame] += pair.executions;
  for (const KernelOrigin& pair : lines.kernels) sums.of_kernels[lines.origins[pair.origin].frame] += pair.device_ns;
  return sums;
}
using Amounts = std::map<u32, u64>;

void capture_both(Captured& trace) {
  trace.at_stack(100, 1, 4);
  trace.capture(110, 0x70);
  trace.at_stack(120, 2, 5);
  trace.capture(130, 0x70);  // a call that added none: the newest node is still the first one's
  trace.capture(140, 0x71);
}

TEST(CapturedNodes, HaveTheLineThatCapturedThem) {
  Captured trace;
  capture_both(trace);
  trace.instantiate(600);
  const Sums sums = sums_of(trace.replayed_twice());
  EXPECT_EQ(sums.device, (Amounts{{1, 200}, {2, 500}}));
  EXPECT_EQ(sums.of_kernels, (Amounts{{1, 200}, {2, 500}}));
  EXPECT_EQ(sums.replayed, (Amounts{{1, 2}, {2, 2}}));
}

TEST(CapturedNodes, KeepItWhereTheGraphIsGoneOnceItIsExecutable) {
  Captured trace;
  capture_both(trace);
  trace.instantiate(600);
  trace.gone(700);
  EXPECT_EQ(sums_of(trace.replayed_twice()).device, (Amounts{{1, 200}, {2, 500}}));
}

TEST(CapturedNodes, OfAnotherGraphOfThatNameAreOthers) {
  Captured trace;
  capture_both(trace);
  trace.gone(200);
  trace.instantiate(600);  // of nodes made by hand
  const Sums sums = sums_of(trace.replayed_twice());
  EXPECT_EQ(sums.device, (Amounts{{3, 700}}));
  EXPECT_EQ(sums.replayed, (Amounts{}));
}

TEST(CapturedNodes, OfACaptureThatFailedAreGone) {
  Captured trace;
  capture_both(trace);
  trace.at_stack(300, 1, 4);
  trace.capture(310, 0x71, 2);
  trace.instantiate(600);
  const Sums sums = sums_of(trace.replayed_twice());
  EXPECT_EQ(sums.replayed, (Amounts{{1, 2}}));
  EXPECT_EQ(sums.device, (Amounts{{1, 500}, {3, 200}}));
}

TEST(CapturedNodes, OfOneNameThatNobodyTellsApartAreNotGuessed) {
  Captured trace(false);
  capture_both(trace);
  trace.instantiate(600);
  const Sums sums = sums_of(trace.replayed_twice());
  EXPECT_EQ(sums.device, (Amounts{{3, 700}}))
      << "their replays are a line's, which of the two captured each is not known";
  EXPECT_EQ(sums.replayed, (Amounts{{1, 2}, {2, 2}}));
}

TEST(CapturedNodes, OfAnUpdateAreNotThoseOfWhichClonesWereMade) {
  Captured trace;
  capture_both(trace);
  trace.instantiate(200);
  trace.gone(300);
  trace.at_stack(310, 2, 5);
  trace.capture(320, 0x70, 2);
  trace.at_stack(330, 1, 4);
  trace.capture(340, 0x71, 2);
  trace.instantiate(600, kGraphUpdate);
  const Sums sums = sums_of(trace.replayed_twice());
  EXPECT_EQ(sums.device, (Amounts{{3, 700}}));
  EXPECT_EQ(sums.replayed, (Amounts{{1, 2}, {2, 2}}));
}

// A damaged file, or one whose definitions were lost: the calls are of a place that is not known, and nobody looks for its frame.
TEST(SourceLines, AFrameThatWasNeverToldIsNone) {
  test::DeviceBuilder trace;
  const auto main = trace.thread(100);
  trace.frame(1, 0, "step", "train.py", 7);
  trace.name_function(0xf1, "kernel", 0xa0);
  for (const u32 frame : {1u, 9000u}) {
    trace.add<Stack>(main, "", frame, frame, [&](auto& r) { r.frame = frame, r.frames = 1, r.operation = 2 * frame; });
    trace.launch(main, 0xf1, frame + 10, frame + 20);
  }
  const ProcessTrace process = trace.load();
  const SourceLines& lines = process.lines;
  u64 known = 0, unknown = 0;
  for (u32 i = 0; i < lines.origins.size(); ++i) {
    ASSERT_LT(std::max(lines.origins[i].frame, lines.origins[i].operation), lines.frames.size()) << i;
    if (i < lines.totals.size()) (lines.origins[i].frame == 1 ? known : unknown) += lines.totals[i].launches;
  }
  EXPECT_EQ(known, 1u);
  EXPECT_EQ(unknown, 1u);
}

}  // namespace
}  // namespace gputrace::test
