// Where an address lies, by a table of mappings that was made up and by our own; and what memory can be read.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <elf.h>
#include <cstring>
#include <fstream>
#include <string>

#include "interpose/code/code_extent.h"
#include "interpose/code/code_mapping.h"
#include "tests/unit/trace/helpers.h"
#include "trace/build_id.h"
#include "trace/code_check.h"
#include "writer/code/file.h"

namespace gputrace::test {
namespace {

class MadeUpMaps : public ::testing::Test {
 protected:
  MadeUpMaps() {
    std::ofstream file(path_);
    file << "55550000-55551000 r--p 00000000 08:01 11                         /usr/bin/app\n"
            "55551000-55553000 r-xp 00001000 08:01 11                         /usr/bin/app\n"
            "60000000-60010000 rw-p 00000000 00:00 0                          [heap]\n"
            "70000000-70004000 r--p 00000000 08:01 12                         /lib/libbig.so.1\n"
            "70004000-70008000 r-xp 00004000 08:01 12                         /lib/libbig.so.1\n"
            "70008000-70100000 r--p 00008000 08:01 12                         /lib/libbig.so.1\n"
            "70100000-70200000 r--p 00100000 08:01 12                         /lib/libbig.so.1\n"
            "70200000-70201000 rw-p 00200000 08:01 12                         /lib/libbig.so.1\n"
            "71000000-71004000 r--p 00003000 08:01 13                         /data/a folder/image (1).cubin\n"
            "72000000-72004000 r--p 00000000 08:01 14                         /tmp/gone (deleted)\n"
            "73000000-73004000 r--s 00000000 00:01 15                         /memfd:x (deleted)\n"
            "74000000-74004000 rw-s 00000000 00:05 16                         /dev/nvidia0\n"
            "75000000-75004000 ---p 00000000 08:01 17                         /lib/guard.so\n"
            "76000000-76001000 r--p 00000000 08:01 18                         /"
         << std::string(2000, 'x')
         << "\n"
            "77000000-77001000 r--p 00000000 08:01 19                         /lib/after.so\n";
  }
  bool find(u64 address) { return read_mapping(address, mapping_, path_.c_str()); }

  TemporaryDirectory folder_;
  std::string path_ = folder_.path() + "/maps";
  Mapping mapping_;
};

TEST_F(MadeUpMaps, FileByReference) {
  ASSERT_TRUE(find(0x70009000));
  EXPECT_TRUE(mapping_.in_file);
  EXPECT_STREQ(mapping_.path, "/lib/libbig.so.1");
  EXPECT_EQ(mapping_.begin, 0x70008000u);
  EXPECT_EQ(mapping_.end, 0x70200000u)
      << "goes on where the next mapping continues the file, and stops at what can be written";
  EXPECT_EQ(mapping_.offset, 0x8000u);
  EXPECT_EQ(mapping_.elf_base, 0x70000000u);
}
TEST_F(MadeUpMaps, BordersAndGaps) {
  EXPECT_TRUE(find(0x55552fff));
  EXPECT_EQ(mapping_.begin, 0x55551000u);
  EXPECT_FALSE(find(0x55553000));
  EXPECT_FALSE(find(0));
  EXPECT_FALSE(find(~0ull));
}
TEST_F(MadeUpMaps, MemoryOnly) {
  ASSERT_TRUE(find(0x60000010));
  EXPECT_FALSE(mapping_.in_file);
  ASSERT_TRUE(find(0x70200010)) << "writable: what is there may not be what the file holds";
  EXPECT_FALSE(mapping_.in_file);
  for (const u64 address : {0x72000000u, 0x73000000u, 0x74000000u}) {
    ASSERT_TRUE(find(address));
    EXPECT_FALSE(mapping_.in_file) << mapping_.path;
  }
  ASSERT_TRUE(find(0x75000000));
  EXPECT_FALSE(mapping_.in_file || mapping_.readable);
}
TEST_F(MadeUpMaps, OddPaths) {
  ASSERT_TRUE(find(0x71001000));
  EXPECT_STREQ(mapping_.path, "/data/a folder/image (1).cubin");
  EXPECT_EQ(mapping_.offset, 0x3000u);
  EXPECT_EQ(mapping_.elf_base, 0u) << "its beginning is not mapped";
  EXPECT_FALSE(find(0x76000000)) << "a path that does not fit";
  ASSERT_TRUE(find(0x77000000));
  EXPECT_STREQ(mapping_.path, "/lib/after.so");
}

TEST(Mapping, KernelAndTableAgree) {
  static const char here[] = "in our own file";
  Mapping asked, read;
  ASSERT_TRUE(read_mapping(reinterpret_cast<u64>(here), read));
  EXPECT_TRUE(read.in_file);
  ASSERT_NE(read.elf_base, 0u);
  BuildId build_id;
  const bool has_build_id = read_build_id(read.elf_base, build_id);
  if (!query_mapping(reinterpret_cast<u64>(here), asked)) GTEST_SKIP() << "the kernel cannot be asked";
  EXPECT_STREQ(asked.path, read.path);
  EXPECT_EQ(asked.offset + (read.begin - asked.begin), read.offset);
  EXPECT_EQ(asked.in_file, read.in_file);
  if (has_build_id) {
    EXPECT_STREQ(asked.build_id, build_id);
  }
}

TEST(Memory, ReadsUpToWhereItEnds) {
  const u64 page = 4096;
  char* at = static_cast<char*>(::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(at, MAP_FAILED);
  ASSERT_EQ(::mprotect(at + 2 * page, page, PROT_NONE), 0);
  const u64 begin = reinterpret_cast<u64>(at);
  EXPECT_EQ(readable_bytes(begin, 2 * page), 2 * page);
  EXPECT_EQ(readable_bytes(begin, 3 * page), 2 * page);
  EXPECT_EQ(readable_bytes(begin + 100, 1ull << 40), 2 * page - 100);
  EXPECT_EQ(readable_bytes(begin + 2 * page, 8), 0u);
  EXPECT_EQ(readable_bytes(0, 8), 0u);
  EXPECT_EQ(readable_bytes(~0ull - 3, 100), 0u);
  char out[64];
  EXPECT_EQ(read_memory(begin + 2 * page - 24, out, sizeof out), 24u);
  EXPECT_EQ(read_memory(begin + 2 * page, out, sizeof out), 0u);
}

TEST(Extent, NothingIsBelieved) {
  const u64 page = 4096;
  char* at = static_cast<char*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::mprotect(at + page, page, PROT_NONE), 0);
  ImageExtent found[kMaxImagesOfModule];
  // A text that touches the end of its memory, with and without room for its NUL.
  char* text = at + page - 12;
  std::memcpy(text, ".version 7.", 12);
  ASSERT_EQ(find_images(text, found), 1u);
  EXPECT_EQ(found[0].kind, ImageKind::Ptx);
  EXPECT_EQ(found[0].bytes, 11u);
  text[11] = '0';
  find_images(text, found);
  EXPECT_EQ(found[0].bytes, 0u);
  // An ELF header alone, with tables that are nowhere.
  u8 elf[64] = {0x7f, 'E', 'L', 'F'};
  const u64 far = 1ull << 40;
  std::memcpy(elf + 40, &far, 8);
  std::memcpy(at + page - 64, elf, 64);
  find_images(at + page - 64, found);
  EXPECT_EQ(found[0].kind, ImageKind::Cubin);
  EXPECT_EQ(found[0].bytes, 0u);
  // A wrapper into nothing.
  const u64 wrapper[3] = {2ull << 32 | 0x466243b1, reinterpret_cast<u64>(at + page), 8};
  ASSERT_EQ(find_images(wrapper, found), 1u);
  EXPECT_EQ(found[0].bytes, 0u);
  const u8 junk[8] = {0xff, 0xee, 0xdd};
  find_images(junk, found);
  EXPECT_EQ(found[0].bytes, 0u);
  EXPECT_EQ(find_images(nullptr, found), 0u);
}

TEST(CodeFile, TellsAChangedFileFromTheOneThatWasLoaded) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/image";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  const std::string text(100, 'a');
  write("head" + text);
  CodeImageRequest image;
  image.path = path;
  image.offset = 4;
  image.bytes = 100;
  image.kind = static_cast<u32>(ImageKind::Fatbin);
  image.check = code_head_check(text.data(), text.size());
  std::span<const std::byte> bytes;
  ASSERT_EQ(map_image(image, bytes), CodeScanState::Scanned);
  ASSERT_EQ(bytes.size(), 100u);
  EXPECT_EQ(std::memcmp(bytes.data(), text.data(), 100), 0);
  write("head" + std::string(100, 'b'));
  EXPECT_EQ(map_image(image, bytes), CodeScanState::Changed);
  write("head");
  EXPECT_EQ(map_image(image, bytes), CodeScanState::Changed) << "too short";
  write("head" + text);
  image.build_id = "0123456789abcdef0123";
  EXPECT_EQ(map_image(image, bytes), CodeScanState::Changed) << "no such build id";
  image.path = folder.path() + "/none";
  EXPECT_EQ(map_image(image, bytes), CodeScanState::Missing);
  for (const char* other : {"/", "/dev/zero", "/proc/self/mem"}) {
    image.path = other;
    EXPECT_NE(map_image(image, bytes), CodeScanState::Scanned) << other;
  }
}

TEST(CodeFile, BuildIdIsTheOneInMemory) {
  Mapping mapping;
  ASSERT_TRUE(read_mapping(reinterpret_cast<u64>("x"), mapping));
  BuildId hex = "";
  read_build_id(mapping.elf_base, hex);
  const Fd file(::open("/proc/self/exe", O_RDONLY));
  EXPECT_EQ(build_id_of(file.get()), hex);
}

// An ELF file of a header, two segments of notes, and what the caller changes.
class MadeElf : public testing::Test {
 protected:
  static constexpr u64 kSegments = sizeof(Elf64_Ehdr), kNotes = 512;
  struct NamedNote {
    Elf64_Nhdr note;
    char name[4];
    u8 content[40];
  };

  void SetUp() override {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_phoff = kSegments;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    put(0, header);
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    put(kSegments, segment);
    segment.p_type = PT_NOTE;
    segment.p_offset = kNotes, segment.p_filesz = 2 * sizeof(NamedNote);
    put(kSegments + sizeof segment, segment);
    segment.p_offset = kNotes + 256, segment.p_filesz = sizeof(NamedNote);
    put(kSegments + 2 * sizeof segment, segment);
  }
  template <typename T>
  void put(u64 offset, const T& value) {
    std::memcpy(bytes_ + offset, &value, sizeof value);
  }
  void put_note(u64 offset, u32 type, u32 size) {
    NamedNote note{{4, size, type}, {'G', 'N', 'U', 0}, {}};
    for (u32 i = 0; i < sizeof note.content; ++i) note.content[i] = static_cast<u8>(0xa0 + i);
    put(offset, note);
  }
  std::string found(u64 size = 1024) const {
    BuildId hex = "";
    const auto read = [&](u64 offset, void* out, u64 bytes) {
      if (offset > size || bytes > size - offset) return false;
      std::memcpy(out, bytes_ + offset, bytes);
      return true;
    };
    return find_build_id(read, hex) ? hex : "";
  }
  u8 bytes_[1024]{};
};

TEST_F(MadeElf, HasItsBuildIdInAnyOfItsNotes) {
  EXPECT_EQ(found(), "");
  put_note(kNotes, NT_GNU_ABI_TAG, sizeof(NamedNote::content));
  put_note(kNotes + sizeof(NamedNote), NT_GNU_BUILD_ID, 3);
  EXPECT_EQ(found(), "a0a1a2");
  put_note(kNotes + sizeof(NamedNote), NT_GNU_ABI_TAG, 3);
  put_note(kNotes + 256, NT_GNU_BUILD_ID, 2);
  EXPECT_EQ(found(), "a0a1") << "in the second segment";
}

TEST_F(MadeElf, ALongBuildIdIsCut) {
  put_note(kNotes, NT_GNU_BUILD_ID, sizeof(NamedNote::content));
  EXPECT_EQ(found().size(), 64u);
  EXPECT_EQ(found().substr(60), "bebf");
}

TEST_F(MadeElf, WhatDoesNotHoldTogetherHasNone) {
  put_note(kNotes, NT_GNU_BUILD_ID, 0xfffffff0);
  EXPECT_EQ(found(), "") << "longer than its segment";
  put_note(kNotes, NT_GNU_BUILD_ID, 4);
  EXPECT_EQ(found(), "a0a1a2a3");
  EXPECT_EQ(found(kNotes), "") << "the notes cannot be read";
  EXPECT_EQ(found(kSegments + 8), "") << "nor the table";
  EXPECT_EQ(found(8), "");
  bytes_[0] = 'E';
  EXPECT_EQ(found(), "") << "no ELF file";
}

}  // namespace
}  // namespace gputrace::test
