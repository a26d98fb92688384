// The scanner as a process of its own: what it answers, and that neither its death nor a bad image does any harm.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "base/clock.h"
#include "tests/unit/trace/helpers.h"
#include "trace/string_id.h"
#include "writer/code/scanner.h"
#include "writer/code/server.h"

namespace gputrace::test {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

std::string ptx(const std::string& kernel, const std::string& body = "ret;") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry " + kernel + "() {\n" + body + "\n}\n";
}
u64 id_of(const std::string& name) { return text_id(name.data(), name.size()); }

// A worker that reads has little memory, of which an address sanitizer wants more than there is. What is seen then is that it died.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kNoRoomForWorkers = true;
#elif defined(__has_feature)
constexpr bool kNoRoomForWorkers = __has_feature(address_sanitizer);
#else
constexpr bool kNoRoomForWorkers = false;
#endif

class Scanner : public ::testing::Test {
 protected:
  Scanner() {
    ::signal(SIGPIPE, SIG_IGN);  // the sidecar has every signal blocked
    EXPECT_TRUE(scanner_.start());
  }
  void SetUp() override {
    if (kNoRoomForWorkers) GTEST_SKIP() << "skipped: a worker's limit of memory leaves the address sanitizer no room";
  }
  void give(u64 id, const std::string& text) {
    CodeImageRequest image;
    image.id = id;
    image.bytes = text.size();
    image.content.assign(text.begin(), text.end());
    scanner_.image(std::move(image));
  }
  void finish(Nanos wait = 20 * kSecond) { scanner_.finish(monotonic_nanos() + wait, sink_); }
  void exchange_for(Nanos time) {
    for (const Nanos until = monotonic_nanos() + time; monotonic_nanos() < until; ::usleep(2000))
      scanner_.exchange(sink_);
  }
  CodeScanState state(u64 image) {
    return scans_.count(image) ? static_cast<CodeScanState>(scans_[image].state) : CodeScanState{};
  }
  // The newest child of this process.
  static pid_t child() {
    std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    pid_t last = 0;
    for (pid_t pid; file >> pid;) last = pid;
    return last;
  }

  CodeScanner scanner_;
  std::vector<CodeKernel> kernels_;
  std::map<u64, CodeScan> scans_;
  CodeScanner::Sink sink_ = [this](const RecordHeader& record) {
    if (record.type == static_cast<u16>(RecordType::CodeKernel))
      kernels_.push_back(reinterpret_cast<const CodeKernel&>(record));
    if (record.type == static_cast<u16>(RecordType::CodeScan)) {
      const auto& scan = reinterpret_cast<const CodeScan&>(record);
      scans_[scan.image] = scan;
    }
  };
};

TEST_F(Scanner, AnswersWhatIsAskedFor) {
  scanner_.device(90);
  give(1, ptx("one") + ".visible .entry two() { ret; }\n");
  give(2, ptx("three"));
  scanner_.kernel(1, id_of("two"));
  scanner_.kernel(1, id_of("two"));
  scanner_.kernel(1, id_of("nowhere"));
  finish();
  ASSERT_EQ(kernels_.size(), 1u);
  EXPECT_EQ(kernels_[0].name, id_of("two"));
  EXPECT_EQ(kernels_[0].image, 1u);
  EXPECT_TRUE(kernels_[0].flags & kCodePtxOnly);
  EXPECT_EQ(kernels_[0].registers, -1);
  EXPECT_EQ(state(1), CodeScanState::Scanned);
  EXPECT_EQ(scans_[1].kernels, 2u);
  EXPECT_EQ(scans_.count(2), 0u) << "nobody asked for a kernel of it";
}

TEST_F(Scanner, OrderDoesNotMatter) {
  scanner_.kernel(1, id_of("one"));
  exchange_for(kSecond / 20);
  give(1, ptx("one"));
  exchange_for(kSecond / 20);
  EXPECT_TRUE(kernels_.empty()) << "no device is known yet";
  scanner_.device(90);
  for (int i = 0; i < 200 && kernels_.empty(); ++i) exchange_for(kSecond / 20);
  EXPECT_EQ(kernels_.size(), 1u) << "while the program runs";
  scanner_.kernel(1, id_of("one"));
  finish();
  EXPECT_EQ(kernels_.size(), 1u);
}

TEST_F(Scanner, LaterNamesAreAnsweredFromWhatIsKnown) {
  scanner_.device(90);
  give(1, ptx("one") + ".visible .entry two() { ret; }\n");
  scanner_.kernel(1, id_of("one"));
  for (int i = 0; i < 200 && scans_.empty(); ++i) exchange_for(kSecond / 20);
  scanner_.kernel(1, id_of("two"));
  finish();
  EXPECT_EQ(kernels_.size(), 2u);
  EXPECT_EQ(state(1), CodeScanState::Scanned);
}

TEST_F(Scanner, BadImagesAreSaid) {
  scanner_.device(90);
  give(1, "");
  give(2, std::string(5000, '\xee'));
  give(3, std::string("\x7f"
                      "ELF",
                      4) +
              std::string(200, '\xff'));
  CodeImageRequest file;
  file.id = 4;
  file.bytes = 10;
  file.path = "/nowhere/at/all";
  scanner_.image(std::move(file));
  give(5, ptx("good"));
  for (u64 image = 1; image <= 5; ++image) scanner_.kernel(image, id_of("good"));
  finish();
  EXPECT_EQ(state(1), CodeScanState::PiecesLost);
  EXPECT_EQ(state(2), CodeScanState::Broken);
  EXPECT_EQ(state(3), CodeScanState::Broken);
  EXPECT_EQ(state(4), CodeScanState::Missing);
  EXPECT_EQ(state(5), CodeScanState::Scanned);
  EXPECT_EQ(kernels_.size(), 1u);
}

TEST_F(Scanner, ADeadServerCostsFactsAndNothingElse) {
  scanner_.device(90);
  give(1, ptx("one"));
  ::kill(child(), SIGKILL);
  ::usleep(50'000);
  for (u64 image = 1; image < 5000; ++image) scanner_.kernel(image, 1);
  give(2, std::string(4u << 20, 'x'));
  exchange_for(kSecond / 50);
  const Nanos begin = monotonic_nanos();
  finish();
  EXPECT_LT(monotonic_nanos() - begin, kSecond);
  EXPECT_EQ(state(1), CodeScanState::Crashed);
  EXPECT_TRUE(kernels_.empty());
}

TEST_F(Scanner, AStoppedServerIsNotWaitedForLongerThanSaid) {
  scanner_.device(90);
  give(1, ptx("one"));
  scanner_.kernel(1, id_of("one"));
  const pid_t server = child();
  ::kill(server, SIGSTOP);
  const Nanos begin = monotonic_nanos();
  finish(kSecond / 2);
  EXPECT_LT(monotonic_nanos() - begin, 2 * kSecond);
  EXPECT_EQ(state(1), CodeScanState::NotFinished);
  ::kill(server, SIGKILL);
}

TEST_F(Scanner, AnImageThatKillsItsWorkerKillsNothingElse) {
  scanner_.device(90);
  // Read, cut short while it is mapped: the worker dies of SIGBUS, as it would of any fault of the parser.
  TemporaryDirectory folder;
  const std::string path = folder.file("image"), text = ptx("one", std::string(64u << 20, ' ') + "ret;");
  std::ofstream(path) << text;
  CodeImageRequest image;
  image.id = 1;
  image.kind = static_cast<u32>(ImageKind::File);
  image.bytes = text.size();
  image.path = path;
  scanner_.image(std::move(image));
  give(2, ptx("two"));
  scanner_.kernel(1, id_of("one"));
  scanner_.kernel(2, id_of("two"));
  scanner_.exchange(sink_);
  const pid_t server = child();
  const std::string children = "/proc/" + std::to_string(server) + "/task/" + std::to_string(server) + "/children";
  pid_t worker = 0;
  for (int i = 0; i < 2000 && !worker; ++i) {
    std::ifstream(children) >> worker;
    ::usleep(200);
  }
  if (worker) ::kill(worker, SIGSEGV);
  finish();
  EXPECT_EQ(state(2), CodeScanState::Scanned);
  ASSERT_EQ(kernels_.empty(), false);
  EXPECT_EQ(kernels_.back().name, id_of("two"));
  if (worker) {
    EXPECT_EQ(state(1), CodeScanState::Crashed);
  }
}

}  // namespace
}  // namespace gputrace::test
