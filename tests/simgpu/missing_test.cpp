// SIMGPU_MISSING: what was asked for and answered "not supported" stands in a file, whatever becomes of the process.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "simgpu/missing/missing.h"

namespace simgpu {
namespace {

class Missing : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(close(mkstemp(path_)), 0);
    setenv("SIMGPU_MISSING", path_, 1);
  }
  void TearDown() override {
    unsetenv("SIMGPU_MISSING");
    unlink(path_);
  }

  // In a child of its own, as libraries count from 0 in each process.
  template <class Body>
  static int in_child(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  // "NAME LIBRARY [WHY]" → count, over all lines.
  std::map<std::string, unsigned long> counts() const {
    std::map<std::string, unsigned long> found;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      EXPECT_GT(line.size(), 11u) << line;
      found[line.substr(11)] += std::stoul(line.substr(0, 10));
      ++lines_;
    }
    return found;
  }

  using Counts = std::map<std::string, unsigned long>;
  char path_[32] = "/tmp/simgpu-missing-XXXXXX";
  mutable int lines_ = 0;
};

TEST_F(Missing, EachNameIsOneLineWithItsCountFromAllThreads) {
  in_child([] {
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int n = 0; n < 250; ++n) simgpu_missing("libx.so.1", n % 2 == 0 ? "even" : "odd");
      });
    }
    for (std::thread& thread : threads) thread.join();
    simgpu_missing("liby.so.1", "even");
    errno = 77;
    simgpu_missing_lookup("liby.so.1", "even", "unknown");
    EXPECT_EQ(errno, 77);
  });
  EXPECT_EQ(
      counts(),
      (Counts{{"even libx.so.1", 500}, {"odd libx.so.1", 500}, {"even liby.so.1", 1}, {"even liby.so.1 unknown", 1}}));
  EXPECT_EQ(lines_, 4);
}

TEST_F(Missing, AKilledProcessAndTheChildOfAForkHaveTheirLines) {
  const int status = in_child([] {
    simgpu_missing("libx.so.1", "both");
    simgpu_missing("libx.so.1", "both");
    in_child([] { simgpu_missing("libx.so.1", "both"); });
    simgpu_missing("libx.so.1", "both");
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(counts(), (Counts{{"both libx.so.1", 4}}));
  EXPECT_EQ(lines_, 2);
}

TEST_F(Missing, PidInTheNameGivesEachProcessAFile) {
  const std::string pattern = std::string(path_) + ".%p";
  setenv("SIMGPU_MISSING", pattern.c_str(), 1);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  in_child([&] {
    simgpu_missing("libx.so.1", "here");
    const pid_t pid = getpid();
    EXPECT_EQ(write(pipes[1], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  });
  pid_t pid = 0;
  ASSERT_EQ(read(pipes[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  const std::string path = std::string(path_) + "." + std::to_string(pid);
  std::ifstream file(path);
  std::string line;
  EXPECT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "         1 here libx.so.1");
  unlink(path.c_str());
}

TEST_F(Missing, DriverAndRuntimeCountWhatTheyDoNotModel) {
  const int status = in_child([] {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    void* found = nullptr;
    CUdriverProcAddressQueryResult why{};
    EXPECT_EQ(cuGetProcAddress("cuNoSuchThing", &found, 13000, 0, &why), CUDA_SUCCESS);
    EXPECT_EQ(cuGetProcAddress("cuMemAlloc", &found, 13000, 0, &why), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphicsUnregisterResource(nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cudaGraphicsUnregisterResource(nullptr), cudaErrorNotSupported);
    EXPECT_EQ(cudaGraphicsUnregisterResource(nullptr), cudaErrorNotSupported);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(counts(), (Counts{{"cuNoSuchThing libcuda.so.1 unknown", 1},
                              {"cuGraphicsUnregisterResource libcuda.so.1", 1},
                              {"cudaGraphicsUnregisterResource libcudart.so.13", 2}}));
}

TEST_F(Missing, AnOldDriverKnowsNothingNewer) {
  setenv("SIMGPU_DRIVER", "12000", 1);
  in_child([] {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    void* found = nullptr;
    EXPECT_EQ(cuGetProcAddress("cuGreenCtxCreate", &found, 12000, 0, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(found, nullptr);
  });
  unsetenv("SIMGPU_DRIVER");
  EXPECT_EQ(counts(), (Counts{{"cuGreenCtxCreate libcuda.so.1 newer", 1}}));
}

}  // namespace
}  // namespace simgpu
