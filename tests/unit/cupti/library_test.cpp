// Where a libcupti is looked for, and in which order.
#include "cupti/places.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gputrace {
namespace {

std::vector<std::string> paths(const CuptiSearch& search) {
  std::vector<CuptiCandidate> candidates(32);
  const u32 count = list_candidates(search, candidates.data(), 32);
  std::vector<std::string> found;
  for (u32 i = 0; i < count; ++i)
    found.push_back(candidates[i].path + std::string(candidates[i].loaded ? " loaded" : ""));
  return found;
}

u64 place(const std::vector<std::string>& all, const std::string& path) {
  for (u64 i = 0; i < all.size(); ++i) {
    if (all[i] == path) return i;
  }
  ADD_FAILURE() << path << " is not tried";
  return all.size();
}

TEST(ListCandidates, WhatIsLoadedComesFirst) {
  const char* loaded[] = {"/x/libc.so.6", "/venv/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"};
  CuptiSearch search;
  search.loaded = loaded;
  search.loaded_count = 2;
  search.driver_path = "/sim/libcuda.so.1";
  EXPECT_EQ(paths(search)[0], "/venv/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12 loaded");
}

TEST(ListCandidates, ThenDriverRuntimePackagesToolkitLoader) {
  const char* loaded[] = {"/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so"};
  CuptiSearch search;
  search.loaded = loaded;
  search.loaded_count = 1;
  search.driver_path = "/sim/lib/libcuda.so.1";
  search.runtime_path = "/rt/lib/libcudart.so.13";
  search.cuda_home = "/opt/cuda";
  const std::vector<std::string> all = paths(search);
  const std::string packages = "/venv/lib/python3.11/site-packages/nvidia/";
  const std::string order[] = {"/sim/lib/libcupti.so.13",
                               "/sim/lib/libcupti.so.12",
                               "/rt/lib/libcupti.so.13",
                               packages + "cu13/lib/libcupti.so.13",
                               packages + "cuda_cupti/lib/libcupti.so.12",
                               "/opt/cuda/extras/CUPTI/lib64/libcupti.so.13",
                               "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
                               "libcupti.so.13",
                               "libcupti.so.12"};
  for (std::size_t i = 1; i < std::size(order); ++i)
    EXPECT_LT(place(all, order[i - 1]), place(all, order[i])) << order[i];
}

TEST(ListCandidates, ADriverOfTheSystemSaysNothing) {
  CuptiSearch search;
  search.driver_path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
  for (const std::string& path : paths(search)) EXPECT_NE(path.rfind("/usr/lib/x86_64", 0), 0u) << path;
}

TEST(ListCandidates, NothingNewerThanTheDriver) {
  CuptiSearch search;
  search.driver_path = "/sim/libcuda.so.1";
  search.newest_major = 12;
  for (const std::string& path : paths(search)) EXPECT_EQ(path.find(".so.13"), std::string::npos) << path;
}

TEST(ListCandidates, StaysWithinItsRoom) {
  CuptiSearch search;
  const std::string longest(600, 'x');
  const std::string driver = "/" + longest + "/libcuda.so.1";
  search.driver_path = driver.c_str();
  CuptiCandidate few[2];
  EXPECT_LE(list_candidates(search, few, 2), 2u);
}

}  // namespace
}  // namespace gputrace
