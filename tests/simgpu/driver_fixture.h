// Every test runs in a child of its own: the driver reads its variables once per process, and the parent never calls
// it.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace simgpu {

using Json = nlohmann::json;
using Variables = std::vector<std::pair<std::string, std::string>>;

inline constexpr char kTestPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 7;
.const .align 4 .b8 table[64];
.visible .entry plain() { ret; }
.visible .entry touch(.param .u64 data, .param .u32 count) { ret; }
.visible .entry shared_user(.param .u64 data) { .shared .align 4 .b8 scratch[1024]; ret; }
.visible .entry bounded() .maxntid 128, 1, 1 { ret; }
)";

struct ChildEnd {
  int status = 0;
  std::vector<Json> truth;
  bool exited() const { return WIFEXITED(status); }
  int code() const { return WEXITSTATUS(status); }

  std::vector<Json> lines(const std::string& op, const std::string& call = "") const {
    std::vector<Json> found;
    for (const Json& line : truth) {
      if (line["op"] == op && (call.empty() || line["call"] == call)) found.push_back(line);
    }
    return found;
  }
};

// Runs `body` in a child with these variables and the truth file; what fails in it fails the test.
template <class Body>
ChildEnd run_child(const Variables& variables, Body body, bool must_pass = true) {
  char path[] = "/tmp/simgpu-truth-XXXXXX";
  const int file = mkstemp(path);
  EXPECT_GE(file, 0);
  close(file);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setenv("SIMGPU_TRUTH", path, 1);
    setenv("SIMGPU_CALL_TIME", "0", 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    body();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  ChildEnd end;
  EXPECT_EQ(waitpid(child, &end.status, 0), child);
  std::ifstream truth(path);
  for (std::string line; std::getline(truth, line);) end.truth.push_back(Json::parse(line));
  unlink(path);
  if (must_pass) {
    EXPECT_TRUE(end.exited() && end.code() == 0) << "status " << end.status;
  }
  return end;
}

// A primary context, current, and the module above.
struct Loaded {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  Loaded() {
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleLoadData(&module, kTestPtx), CUDA_SUCCESS);
  }
  CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&found, module, name), CUDA_SUCCESS);
    return found;
  }
};

inline CUresult launch(CUfunction function, unsigned grid, unsigned block, CUstream stream = nullptr,
                       unsigned shared = 0) {
  void* none[1] = {nullptr};
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, none, nullptr);
}

inline CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
  return stream;
}

inline uint64_t start_of(const Json& line) { return line["start_ns"].get<uint64_t>(); }
inline uint64_t end_of(const Json& line) { return line["end_ns"].get<uint64_t>(); }

}  // namespace simgpu
