// CUPTI's records as each version lays them out -> ours; broken ones are told apart, never read past their end.
#include "cupti/records.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cupti/api.h"
#include "cupti/layout.h"
#include "trace/key_calls.h"

namespace gputrace {
namespace {

constexpr u64 kNow = 1'700'000'000'000'000'000;

struct Version {
  u32 version;
  u64 kernel, copy, peer, memset, graph, jit, overhead;  // sizes of that version's records
};
// 12.0, 12.4, 12.8, 13.0, and one that adds 64 bytes everywhere.
constexpr Version kVersions[] = {{19, 200, 80, 88, 80, 40, 56, 40},
                                 {22, 208, 88, 96, 88, 48, 64, 56},
                                 {26, 208, 88, 96, 88, 48, 64, 56},
                                 {130001, 216, 96, 96, 88, 56, 72, 56},
                                 {130300, 280, 160, 160, 152, 120, 136, 120}};

template <typename Layout>
std::vector<u8> bytes_of(const Layout& layout, u64 size) {
  std::vector<u8> bytes(size, 0);
  std::memcpy(bytes.data(), &layout, size < sizeof layout ? size : sizeof layout);
  return bytes;
}

RecordRules rules_of(u32 version) {
  RecordRules rules;
  rules.version = version;
  rules.earliest = kNow - 1'000'000'000;
  rules.latest = kNow + 1'000'000'000;
  return rules;
}

cupti_layout::Kernel a_kernel() {
  cupti_layout::Kernel kernel{};
  kernel.kind = kKindConcurrentKernel;
  kernel.registers = 42;
  kernel.start = kNow;
  kernel.end = kNow + 1000;
  kernel.device = 3;
  kernel.context = 5;
  kernel.stream = 7;
  kernel.grid[0] = 10, kernel.grid[1] = 11, kernel.grid[2] = 12;
  kernel.block[0] = 128, kernel.block[1] = 2, kernel.block[2] = 1;
  kernel.static_shared = 1024;
  kernel.dynamic_shared = 2048;
  kernel.local_per_thread = 16;
  kernel.correlation = 99;
  kernel.name = "_Z4stepv";
  kernel.queued = kNow - 2000;
  kernel.submitted = kNow - 1000;
  kernel.shared_executed = 65536;
  kernel.graph_node = 0x100000002;
  kernel.graph = 8;
  kernel.cluster[0] = 2, kernel.cluster[1] = 1, kernel.cluster[2] = 1;
  return kernel;
}

TEST(ParseActivity, ReadsAKernelOfEveryVersion) {
  for (const Version& version : kVersions) {
    std::vector<u8> bytes = bytes_of(a_kernel(), version.kernel);
    if (version.version >= kCupti13_0) bytes[208] = 1;
    AnyDeviceRecord out;
    const char* name = nullptr;
    ASSERT_EQ(parse_activity(bytes.data(), bytes.size(), rules_of(version.version), out, name), ParseResult::Record)
        << version.version;
    EXPECT_EQ(out.header.type, static_cast<u16>(RecordType::DeviceKernel));
    EXPECT_EQ(out.header.size, sizeof(DeviceKernel));
    EXPECT_EQ(out.kernel.start, kNow);
    EXPECT_EQ(out.kernel.finish, kNow + 1000);
    EXPECT_EQ(out.kernel.queued, 0u) << "nobody asked for latency stamps";
    EXPECT_EQ(out.kernel.submitted, 0u);
    EXPECT_EQ(out.kernel.correlation, 99u);
    EXPECT_EQ(out.kernel.device, 3u);
    EXPECT_EQ(out.kernel.context, 5u);
    EXPECT_EQ(out.kernel.stream, 7u);
    EXPECT_EQ(out.kernel.grid_z, 12u);
    EXPECT_EQ(out.kernel.block_x, 128u);
    EXPECT_EQ(out.kernel.registers, 42u);
    EXPECT_EQ(out.kernel.static_shared_bytes, 1024u);
    EXPECT_EQ(out.kernel.dynamic_shared_bytes, 2048u);
    EXPECT_EQ(out.kernel.shared_executed_bytes, 65536u);
    EXPECT_EQ(out.kernel.local_bytes, 16u);
    EXPECT_EQ(out.kernel.graph_node, 0x100000002u);
    EXPECT_EQ(out.kernel.graph, 8u);
    EXPECT_EQ(out.kernel.cluster_x, 2u);
    EXPECT_EQ(out.kernel.flags, version.version >= kCupti13_0 ? u32{kDeviceLaunched} : 0u);
    EXPECT_STREQ(name, "_Z4stepv");
  }
}

TEST(ParseActivity, TakesLatencyStampsOnlyWhereTheyCanBe) {
  RecordRules rules = rules_of(130001);
  rules.latency = true;
  AnyDeviceRecord out;
  const char* name;
  cupti_layout::Kernel kernel = a_kernel();
  ASSERT_EQ(parse_activity(&kernel, 216 < sizeof kernel ? 216 : sizeof kernel, rules, out, name), ParseResult::Record);
  EXPECT_EQ(out.kernel.queued, kNow - 2000);
  EXPECT_EQ(out.kernel.submitted, kNow - 1000);
  kernel.queued = kNow + 1;  // after its start
  kernel.submitted = ~0ull;  // CUPTI's "not known" of old
  ASSERT_EQ(parse_activity(&kernel, sizeof kernel, rules, out, name), ParseResult::Record);
  EXPECT_EQ(out.kernel.queued, 0u);
  EXPECT_EQ(out.kernel.submitted, 0u);
}

TEST(ParseActivity, CountsTimesThatAreNone) {
  AnyDeviceRecord out;
  const char* name;
  const auto result = [&](u64 start, u64 end) {
    cupti_layout::Kernel kernel = a_kernel();
    kernel.start = start;
    kernel.end = end;
    return parse_activity(&kernel, sizeof kernel, rules_of(19), out, name);
  };
  EXPECT_EQ(result(0, kNow), ParseResult::ZeroTime);
  EXPECT_EQ(result(kNow, 0), ParseResult::ZeroTime);
  EXPECT_EQ(result(0, 0), ParseResult::ZeroTime);
  EXPECT_EQ(result(kNow + 1, kNow), ParseResult::Impossible);
  EXPECT_EQ(result(5, 6), ParseResult::Impossible) << "long before the process";
  EXPECT_EQ(result(kNow, ~0ull), ParseResult::Impossible);
  EXPECT_EQ(result(kNow, kNow + 2'000'000'000), ParseResult::Impossible) << "in the future";
  EXPECT_EQ(result(kNow, kNow), ParseResult::Record);
}

TEST(ParseActivity, ReadsTheOtherKindsOfEveryVersion) {
  for (const Version& version : kVersions) {
    const RecordRules rules = rules_of(version.version);
    AnyDeviceRecord out;
    const char* name;
    const auto parse = [&](const auto& layout, u64 size) {
      const std::vector<u8> bytes = bytes_of(layout, size);
      return parse_activity(bytes.data(), bytes.size(), rules, out, name);
    };
    cupti_layout::Memcpy copy{};
    copy.kind = kKindMemcpy;
    copy.copy_kind = 1, copy.source_kind = 2, copy.destination_kind = 3, copy.flags = 1;
    copy.bytes = 4096, copy.start = kNow, copy.end = kNow + 10, copy.correlation = 17, copy.graph_node = 5,
    copy.graph = 6;
    ASSERT_EQ(parse(copy, version.copy), ParseResult::Record);
    EXPECT_EQ(out.copy.bytes, 4096u);
    EXPECT_EQ(out.copy.correlation, 17u);
    EXPECT_EQ(out.copy.kind, 1);
    EXPECT_EQ(out.copy.source_memory, 2);
    EXPECT_EQ(out.copy.destination_memory, 3);
    EXPECT_EQ(out.copy.asynchronous, 1);
    EXPECT_EQ(out.copy.source_device, -1);
    EXPECT_EQ(out.copy.graph_node, 5u);

    cupti_layout::MemcpyPeer peer{};
    peer.kind = kKindMemcpy2;
    peer.start = kNow, peer.end = kNow + 10, peer.correlation = 18, peer.source_device = 1, peer.destination_device = 2;
    ASSERT_EQ(parse(peer, version.peer), ParseResult::Record);
    EXPECT_EQ(out.copy.source_device, 1);
    EXPECT_EQ(out.copy.destination_device, 2);
    EXPECT_EQ(out.copy.correlation, 18u);

    cupti_layout::Memset memset{};
    memset.kind = kKindMemset;
    memset.bytes = 77, memset.start = kNow, memset.end = kNow + 10, memset.correlation = 19, memset.flags = 1,
    memset.memory_kind = 3;
    ASSERT_EQ(parse(memset, version.memset), ParseResult::Record);
    EXPECT_EQ(out.memset.bytes, 77u);
    EXPECT_EQ(out.memset.correlation, 19u);
    EXPECT_EQ(out.memset.memory, 3);
    EXPECT_EQ(out.memset.asynchronous, 1);

    cupti_layout::GraphTrace graph{};
    graph.kind = kKindGraphTrace;
    graph.correlation = 21, graph.start = kNow, graph.end = kNow + 5, graph.graph = 4;
    ASSERT_EQ(parse(graph, version.graph), ParseResult::Record);
    EXPECT_EQ(out.graph.graph, 4u);
    EXPECT_EQ(out.graph.correlation, 21u);

    cupti_layout::Jit jit{};
    jit.kind = kKindJit;
    jit.entry = 1, jit.operation = 2, jit.start = kNow, jit.end = kNow + 5, jit.cache_size = 12345;
    ASSERT_EQ(parse(jit, version.jit), ParseResult::Record);
    EXPECT_EQ(out.jit.bytes, 12345u);
    EXPECT_EQ(out.jit.operation, 2u);

    cupti_layout::Overhead overhead{};
    overhead.kind = kKindOverhead;
    overhead.overhead_kind = 1 << 16, overhead.object_kind = 2, overhead.object[1] = 1234;
    overhead.start = kNow, overhead.end = kNow + 9;
    ASSERT_EQ(parse(overhead, version.overhead), ParseResult::Record);
    EXPECT_EQ(out.overhead.thread, 1234u);
    EXPECT_EQ(out.overhead.finish, kNow + 9);

    cupti_layout::Api api{};
    api.kind = kKindDriver;
    api.callback = kCallback_cuLaunchKernel, api.start = kNow, api.end = kNow + 9, api.thread = 77,
    api.correlation = 22;
    ASSERT_EQ(parse(api, 40), ParseResult::Record);
    EXPECT_EQ(out.api.level, 1u);
    EXPECT_EQ(out.api.thread, 77u);
    api.kind = kKindRuntime;
    ASSERT_EQ(parse(api, 40), ParseResult::Record);
    EXPECT_EQ(out.api.level, 2u);
  }
}

TEST(DetailsToFree, OnlyThoseThatThisVersionHas) {
  cupti_layout::OverheadDetails record{};
  int details = 0;
  record.overhead.kind = kKindOverhead;
  record.overhead.overhead_kind = 6 << 16;
  record.data = &details;
  EXPECT_EQ(details_to_free(&record, sizeof record, 130000), &details);
  EXPECT_EQ(details_to_free(&record, sizeof record, 22), &details);         // 12.4
  EXPECT_EQ(details_to_free(&record, sizeof record, 21), nullptr);          // 12.3: whatever lies there
  EXPECT_EQ(details_to_free(&record, sizeof record - 1, 130000), nullptr);  // cut
  record.overhead.overhead_kind = 1 << 16;
  EXPECT_EQ(details_to_free(&record, sizeof record, 130000), nullptr);
  record.overhead.overhead_kind = 6 << 16;
  record.overhead.kind = kKindMemset;
  EXPECT_EQ(details_to_free(&record, sizeof record, 130000), nullptr);
}

// Exactly sized heap blocks: a sanitizer sees a read past the end.
TEST(ParseActivity, NeverReadsPastTheEndAndSaysSo) {
  for (u32 kind = 0; kind < 64; ++kind) {
    for (u64 size = 0; size <= 288; ++size) {
      std::vector<u8> bytes(size, 0x5a);
      if (size >= sizeof kind) std::memcpy(bytes.data(), &kind, sizeof kind);
      AnyDeviceRecord out;
      const char* name = nullptr;
      const ParseResult result = parse_activity(bytes.data(), size, rules_of(130001), out, name);
      EXPECT_NE(result, ParseResult::Record) << kind << " " << size;
      if (size < 24) {
        EXPECT_TRUE(result == ParseResult::Unreadable || result == ParseResult::Skipped) << kind << " " << size;
      }
      EXPECT_EQ(name, nullptr);
    }
  }
}

TEST(ParseActivity, SkipsKindsThatAreNotKept) {
  std::vector<u8> bytes(64, 0);
  const u32 kind = 12;  // a marker
  std::memcpy(bytes.data(), &kind, sizeof kind);
  AnyDeviceRecord out;
  const char* name;
  EXPECT_EQ(parse_activity(bytes.data(), bytes.size(), rules_of(19), out, name), ParseResult::Skipped);
}

}  // namespace
}  // namespace gputrace
