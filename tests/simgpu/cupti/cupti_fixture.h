// A CUPTI client as the toolkit's samples have it: buffers on request, records parsed when they come back.
#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/cupti/headers.h"
#include "tests/simgpu/driver_fixture.h"

namespace simgpu {

inline const Variables kMonotonic = {{"SIMGPU_CLOCK", "monotonic"}};

// What a client got, copied out of its buffers.
struct Client {
  std::mutex mutex;
  std::vector<std::vector<char>> records;  // in the order in which they came
  size_t buffer_bytes = 1 << 20;
  size_t most_records = 0;
  bool refuses = false;
  std::atomic<int> requested{0};
  std::atomic<int> completed{0};
  int broken_buffers = 0;  // that did not end with a whole record
  std::vector<size_t> valid_sizes;

  template <class Record>
  std::vector<Record> of(CUpti_ActivityKind kind) {
    std::lock_guard lock(mutex);
    std::vector<Record> found;
    for (const std::vector<char>& bytes : records) {
      CUpti_ActivityKind own{};
      std::memcpy(&own, bytes.data(), sizeof own);
      if (own != kind) continue;
      Record record;
      std::memset(&record, 0, sizeof record);
      std::memcpy(&record, bytes.data(), std::min(sizeof record, bytes.size()));
      found.push_back(record);
    }
    return found;
  }
  std::vector<CUpti_ActivityKernel10> kernels() {
    return of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  size_t count() {
    std::lock_guard lock(mutex);
    return records.size();
  }
};

inline Client& client() {
  static auto* const kClient = new Client;
  return *kClient;
}

inline void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most) {
  Client& c = client();
  ++c.requested;
  *most = c.most_records;
  *size = c.refuses ? 0 : c.buffer_bytes;
  *buffer = c.refuses ? nullptr : static_cast<uint8_t*>(std::aligned_alloc(8, (c.buffer_bytes + 7) / 8 * 8));
}

inline void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  Client& c = client();
  ++c.completed;
  std::lock_guard lock(c.mutex);
  c.valid_sizes.push_back(valid);
  std::vector<uint8_t*> begins;
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  while ((result = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS)
    begins.push_back(reinterpret_cast<uint8_t*>(record));
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) ++c.broken_buffers;
  begins.push_back(buffer + valid);
  for (size_t i = 0; i + 1 < begins.size(); ++i) c.records.emplace_back(begins[i], begins[i + 1]);
  std::free(buffer);
}

// Registers and enables; `kinds` before the first context.
inline void start_client(const std::vector<CUpti_ActivityKind>& kinds) {
  ASSERT_EQ(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), CUPTI_SUCCESS);
  for (const CUpti_ActivityKind kind : kinds) ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS) << kind;
}

inline void finish_client() {
  cuCtxSynchronize();
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
}

// The truth as it is now, of this process.
inline std::vector<Json> truth_so_far(const std::string& op) {
  std::vector<Json> found;
  std::ifstream truth(std::getenv("SIMGPU_TRUTH"));
  for (std::string line; std::getline(truth, line);) {
    Json one = Json::parse(line);
    if (one["op"] == op) found.push_back(std::move(one));
  }
  return found;
}

inline std::map<uint64_t, Json> by_correlation(const std::vector<Json>& lines) {
  std::map<uint64_t, Json> found;
  for (const Json& line : lines) found[line["correlation"].get<uint64_t>()] = line;
  return found;
}

}  // namespace simgpu
