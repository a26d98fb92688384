// What the sidecar's watch makes of the definitions: which images it hands on, which kernels it asks for, and that
// nothing it is given can harm it.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/trace/helpers.h"
#include "trace/string_id.h"
#include "writer/code/watch.h"

namespace gputrace::test {
namespace {

struct Forwarded final : RecordSink {
  void thread_began(const RingThread&) override {}
  void records(const RingThread&, u64, u32 count, const u8*, u32 size) override { records_ += count, bytes_ += size; }
  void thread_ended(const RingThread&) override {}
  u64 records_ = 0, bytes_ = 0;
};

struct Asked final : CodeRequests {
  void device(u32 capability) override { devices.push_back(capability); }
  void image(CodeImageRequest&& image) override { images.push_back(std::move(image)); }
  void kernel(u64 image, u64 name) override { kernels.emplace_back(image, name); }
  std::vector<u32> devices;
  std::vector<CodeImageRequest> images;
  std::vector<std::pair<u64, u64>> kernels;
};

class Watch : public ::testing::Test {
 protected:
  template <typename Record>
  void give(Record record, const std::string& tail = {}) {
    record.header.type = static_cast<u16>(Record::kType);
    record.header.size = static_cast<u16>(sizeof record + align_up(tail.size(), 8));
    Bytes8 bytes(record.header.size);
    std::memcpy(bytes.data(), &record, sizeof record);
    std::memcpy(bytes.data() + sizeof record, tail.data(), tail.size());
    watch_.records(thread_, 0, 1, bytes.data(), static_cast<u32>(bytes.size()));
  }
  u64 text(const std::string& value) {
    Text record{};
    record.id = text_id(value.data(), value.size());
    record.total = static_cast<u32>(value.size());
    for (std::size_t at = 0; at < value.size(); at += 2048) {
      record.offset = static_cast<u32>(at);
      give(record, value.substr(at, 2048));
    }
    return record.id;
  }
  void image(u64 module, u64 id, CodeState state, u64 path = 0, u64 bytes = 100) {
    CodeImage record{};
    record.module = module;
    record.image = id;
    record.state = static_cast<u32>(state);
    record.path = path;
    record.bytes = bytes;
    give(record);
  }
  void piece(u64 id, u64 offset, u64 total, const std::string& bytes) {
    CodeBytes record{};
    record.image = id;
    record.offset = offset;
    record.total = total;
    give(record, bytes);
  }
  void module(u64 handle, ModuleAct what) {
    ModuleLoad record{};
    record.module = handle;
    record.what = static_cast<u32>(what);
    give(record);
  }
  void function(u64 module, u64 name) {
    FunctionGet record{};
    record.module = module;
    record.name = name;
    give(record);
  }

  Forwarded next_;
  Asked asked_;
  CodeWatch watch_{next_, asked_};
  RingThread thread_;
};

TEST_F(Watch, ImageInAFile) {
  const std::string path = "/a/" + std::string(3000, 'p');  // in two pieces
  const u64 path_id = text(path);
  text("no path");
  module(7, ModuleAct::Module);
  image(7, 1, CodeState::InFile, path_id);
  function(7, 42);
  function(8, 43);
  ASSERT_EQ(asked_.images.size(), 1u);
  EXPECT_EQ(asked_.images[0].path, path);
  EXPECT_EQ(asked_.images[0].bytes, 100u);
  EXPECT_EQ(asked_.kernels, (std::vector<std::pair<u64, u64>>{{1, 42}}));
  EXPECT_EQ(next_.records_, 7u);
}

TEST_F(Watch, CopiedImageIsPutTogether) {
  piece(3, 0, 20, "0123456789abcdef");
  piece(3, 16, 20, "ghij");
  image(7, 3, CodeState::Copied);
  image(9, 3, CodeState::Copied);  // the same bytes again
  ASSERT_EQ(asked_.images.size(), 1u);
  EXPECT_EQ(std::string(asked_.images[0].content.begin(), asked_.images[0].content.end()), "0123456789abcdefghij");
  function(9, 1);
  EXPECT_EQ(asked_.kernels, (std::vector<std::pair<u64, u64>>{{3, 1}}));
}

TEST_F(Watch, CopyWithAHoleIsNoCopy) {
  piece(3, 0, 20, "01234567");
  piece(3, 16, 20, "ghij");
  image(7, 3, CodeState::Copied);
  ASSERT_EQ(asked_.images.size(), 1u);
  EXPECT_TRUE(asked_.images[0].content.empty());
  EXPECT_TRUE(asked_.images[0].path.empty());
}

TEST_F(Watch, CopyThatWasGivenUp) {
  piece(3, 0, 1u << 20, std::string(4000, 'x'));
  image(7, 3, CodeState::NoRoom);
  image(7, 4, CodeState::OverBudget);
  image(7, 5, CodeState::Unreadable);
  function(7, 1);
  EXPECT_TRUE(asked_.images.empty());
  EXPECT_TRUE(asked_.kernels.empty());
}

TEST_F(Watch, HandleThatComesBackMeansAnotherModule) {
  const u64 path = text("/x");
  module(7, ModuleAct::Module);
  image(7, 1, CodeState::InFile, path);
  module(7, ModuleAct::Unload);
  function(7, 1);
  EXPECT_TRUE(asked_.kernels.empty());
  module(7, ModuleAct::Library);
  image(7, 2, CodeState::InFile, path);
  image(7, 3, CodeState::InFile, path);  // a module of two images
  function(7, 5);
  EXPECT_EQ(asked_.kernels, (std::vector<std::pair<u64, u64>>{{2, 5}, {3, 5}}));
}

TEST_F(Watch, Devices) {
  DeviceFacts facts{};
  facts.capability_major = 9;
  give(facts);
  facts.capability_major = 12;
  facts.capability_minor = 1;
  give(facts);
  facts.capability_major = 4'000'000;
  give(facts);
  EXPECT_EQ(asked_.devices, (std::vector<u32>{90, 121}));
}

TEST_F(Watch, OnlyDefinitionsAreLookedAt) {
  thread_.slot = 3;
  module(7, ModuleAct::Module);
  image(7, 1, CodeState::InFile, text("/x"));
  EXPECT_TRUE(asked_.images.empty());
  EXPECT_EQ(next_.records_, 3u);
}

TEST_F(Watch, WhatItKeepsIsBounded) {
  for (u64 id = 1; id <= 100; ++id) piece(id, 0, kMaxCopiedImages / 8, std::string(4000, 'x'));
  piece(1000, 0, kMaxCodeCopy + 1, "x");
  u64 whole = 0;
  for (u64 id = 200; id < 300; ++id) {
    piece(id, 0, 8, "12345678");
    image(id, id, CodeState::Copied);
    whole += !asked_.images.back().content.empty();
  }
  EXPECT_EQ(whole, 0u) << "claims take their room before their bytes come";
}

TEST_F(Watch, RandomRecordsDoNoHarm) {
  Random random(5);
  for (int round = 0; round < 20000; ++round) {
    Bytes8 bytes(24 + 8 * (random() % 24));
    for (u8& byte : bytes) byte = static_cast<u8>(random() % 4 ? random() % 3 : random());
    RecordHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    static constexpr RecordType kTypes[] = {RecordType::Text,       RecordType::CodeBytes,   RecordType::CodeImage,
                                            RecordType::ModuleLoad, RecordType::FunctionGet, RecordType::DeviceFacts};
    header.type = static_cast<u16>(kTypes[random() % 6]);
    header.size = static_cast<u16>(random() % 8 ? bytes.size() : random());
    header.result = static_cast<u16>(random() % 2);
    std::memcpy(bytes.data(), &header, sizeof header);
    watch_.records(thread_, 0, 1, bytes.data(), static_cast<u32>(bytes.size()));
  }
  EXPECT_EQ(next_.records_, 20000u);
}

}  // namespace
}  // namespace gputrace::test
