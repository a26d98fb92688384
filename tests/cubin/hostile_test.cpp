// Broken images: whatever is cut off or flipped, the reader answers or refuses; run under sanitizers it must stay
// silent.
#include <random>

#include "tests/cubin/test_images.h"

namespace gputrace {
namespace {

// Everything that a caller may do with bytes from anywhere. Returns how many kernels came out.
std::size_t read_everything(ByteSpan bytes) {
  std::size_t kernels = 0;
  for (unsigned device : {75u, 90u, 120u}) {
    const auto loaded = load_image(bytes, device);
    if (loaded) kernels += loaded->module.kernels.size();
  }
  if (const auto entries = read_fatbin(bytes)) {
    for (const FatbinEntry& entry : *entries) {
      if (entry.raw_bytes < (8u << 20)) unpack(entry);
    }
  }
  return kernels;
}

// An exact copy on the heap, so that a sanitizer sees the first byte beyond it.
std::size_t read_copy(std::string_view bytes) {
  const std::vector<char> copy(bytes.begin(), bytes.end());
  return read_everything(std::as_bytes(std::span(copy)));
}

class Hostile : public testing::TestWithParam<const char*> {};

TEST_P(Hostile, TruncatedAnywhere) {
  NEED_IMAGES();
  const std::string image = slurp(GetParam());
  ASSERT_GT(image.size(), 1000u);
  ASSERT_GT(read_copy(image), 0u);
  const std::size_t step = std::max<std::size_t>(1, image.size() / 400);
  for (std::size_t size = 0; size < image.size(); size += step) read_copy(std::string_view(image).substr(0, size));
  for (std::size_t size = 0; size < 200; ++size) read_copy(std::string_view(image).substr(0, size));
}

TEST_P(Hostile, BitsFlipped) {
  NEED_IMAGES();
  const std::string image = slurp(GetParam());
  std::mt19937 random(7);
  std::size_t survived = 0;
  for (int round = 0; round < 600; ++round) {
    std::string broken = image;
    const int flips = 1 + round % 8;
    for (int i = 0; i < flips; ++i) {
      // Half of them in the first KiB, where the headers are.
      const std::size_t at = random() % (round % 2 == 0 ? 1024 : broken.size());
      broken[at] = static_cast<char>(broken[at] ^ (1 << (random() % 8)));
    }
    survived += read_copy(broken) > 0 ? 1 : 0;
  }
  EXPECT_GT(survived, 0u);  // most flips hit code or names: refusing everything would be no reader
}

TEST_P(Hostile, SectionTableFlipped) {
  NEED_IMAGES();
  const std::string image = slurp(GetParam());
  std::mt19937 random(11);
  for (int round = 0; round < 600; ++round) {
    std::string broken = image;
    const std::size_t at = broken.size() - 1 - random() % std::min<std::size_t>(broken.size(), 4096);
    broken[at] = static_cast<char>(random());
    read_copy(broken);
  }
}

INSTANTIATE_TEST_SUITE_P(Images, Hostile,
                         testing::Values("sm75.cubin", "sm90.cubin", "none.fatbin", "speed.fatbin", "size.fatbin"));

TEST(HostilePtx, TruncatedAndFlipped) {
  NEED_IMAGES();
  const std::string text = slurp("sm90.ptx");
  std::mt19937 random(3);
  for (std::size_t size = 0; size < text.size(); size += 7) read_copy(text.substr(0, size));
  for (int round = 0; round < 600; ++round) {
    std::string broken = text;
    for (int i = 0; i < 5; ++i) broken[random() % broken.size()] = static_cast<char>(random());
    read_copy(broken);
  }
}

TEST(HostilePtx, AbsurdNumbers) {
  const std::string head = ".version 8.0 .target sm_90 ";
  EXPECT_FALSE(read_ptx(head + ".entry k(.param .b8 x[99999999999999999999]) { }"));
  EXPECT_FALSE(read_ptx(head + ".entry k(.param .b64 x[4096]) {"));
  EXPECT_FALSE(read_ptx(head + ".entry k"));
  EXPECT_FALSE(read_ptx(".entry k() { }"));
  const auto huge = read_ptx(head + ".global .b64 x[9999999][9999999][9999999]; .global .b8 y[4];");
  ASSERT_TRUE(huge);
  EXPECT_EQ(huge->globals.size(), 1u);  // what cannot be is left out
}

TEST(HostileFatbin, ClaimsOfSizeAreNotBelieved) {
  FatbinEntry entry;
  entry.kind = ContainerKind::kCubin;
  const std::vector<std::byte> few(64);
  entry.payload = few;
  entry.raw_bytes = kMaxImageBytes;
  for (Compression c : {Compression::kLz4, Compression::kZstd}) {
    entry.compression = c;
    EXPECT_FALSE(unpack(entry));
  }
}

}  // namespace
}  // namespace gputrace
