#include "interpose/library/cudnn_graphs.h"

#include <atomic>
#include <cstring>

#include "trace/record.h"

namespace gputrace {
namespace {

// cudnnBackendDescriptorType_t
enum : i32 {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kGraph = 15,
  kTensor = 17,
  kProduct = 19,
  kAttention = 41,
  kAttentionBackward = 43,
};
// cudnnBackendAttributeName_t
enum : int {
  kConvolutionCompute = 100,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanConfig = 401,
  kGraphOperations = 801,
  kTensorType = 901,
  kTensorDims = 902,
  kEngineGraph = 1300,
};
// Attributes of an operation that are its operands, and the place of each: input, filter, output of a convolution; A, B, C of a product;
// queries, keys, values of attention. Place 3 is the convolution's descriptor.
struct Operand {
  int attribute;
  u32 place;
};
constexpr Operand kOperands[] = {
    {704, 0},  {703, 1},  {705, 2},  {702, 3},  // forward: x, w, y, descriptor
    {710, 0},  {709, 1},  {711, 2},  {708, 3},  // backward data: dx, w, dy
    {716, 0},  {715, 1},  {717, 2},  {714, 3},  // backward filter: x, dw, dy
    {1520, 0}, {1521, 1}, {1522, 2},            // product
    {2800, 0}, {2801, 1}, {2802, 2},            // attention
    {2851, 0}, {2852, 1}, {2853, 2},            // attention, backward
};

// One descriptor. Which of its members count follows from its type.
struct Entry {
  std::atomic<u64> key;  // its address; 0: free
  i32 type;
  i32 compute;              // of a convolution's descriptor, and of an operation that was given it
  GraphTensor operands[3];  // of an operation; [0] is a tensor itself
  GraphWork work;           // of a graph and all that is made of it
};
constexpr u32 kEntries = 4096, kEntryProbes = 32;
constinit Entry entries[kEntries]{};

// Held for the time of a copy. A holder that does not come back (a fork in another thread) costs what would have been learnt, nothing else.
constinit std::atomic<bool> taken{false};
class TableLock {
 public:
  TableLock() {
    for (u32 i = 0; i < kPatience && !held_; ++i) held_ = !taken.exchange(true, std::memory_order_acquire);
  }
  ~TableLock() {
    if (held_) taken.store(false, std::memory_order_release);
  }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
  bool held() const { return held_; }

 private:
  static constexpr u32 kPatience = 1u << 16;
  bool held_ = false;
};

u32 entry_place(u64 key) { return static_cast<u32>((key * 0x9e3779b97f4a7c15ull) >> 52); }
static_assert(kEntries == 1u << (64 - 52));

Entry* find(const void* descriptor) {
  const u64 key = reinterpret_cast<u64>(descriptor);
  for (u32 i = 0; key != 0 && i < kEntryProbes; ++i) {
    Entry& entry = entries[(entry_place(key) + i) % kEntries];
    if (entry.key.load(std::memory_order_relaxed) == key) return &entry;
  }
  return nullptr;
}

void forget(Entry& entry, i32 type) {
  entry.type = type;
  entry.compute = -1;
  for (GraphTensor& operand : entry.operands) operand = {-1, 0, {}};
  entry.work = {};
  entry.work.type = entry.work.compute = -1;
}

const void* pointer_at(const void* values, i64 index) {
  const void* value;
  std::memcpy(&value, static_cast<const char*>(values) + index * static_cast<i64>(sizeof value), sizeof value);
  return value;
}

bool is_convolution(i32 type) { return type == kForward || type == kBackwardFilter || type == kBackwardData; }

u64 dim(const GraphTensor& tensor, int i) { return i >= 0 && i < tensor.count ? tensor.dims[i] : 0; }

// 2 × elements of the output × channels of a group × size of the filter, whichever of the three is computed.
u64 convolution_flops(const Entry& operation) {
  const GraphTensor &filter = operation.operands[1], &output = operation.operands[2];
  if (operation.operands[0].count < 3 || filter.count < 3 || output.count < 3) return 0;
  u64 flops = 2;
  for (int i = 0; i < output.count; ++i) flops *= dim(output, i);
  for (int i = 1; i < filter.count; ++i) flops *= dim(filter, i);
  return flops;
}
// A is … × m × k, C is … × m × n; what is … is the batch.
u64 product_flops(const Entry& operation) {
  const GraphTensor &a = operation.operands[0], &c = operation.operands[2];
  if (a.count < 2 || c.count < 2) return 0;
  u64 flops = 2 * dim(a, a.count - 1);
  for (int i = 0; i < c.count; ++i) flops *= dim(c, i);
  return flops;
}
// Batch × heads × length × size of a head. Forward: queries by keys, then by values; the way back does five products of the same sizes.
u64 attention_flops(const Entry& operation) {
  const GraphTensor &q = operation.operands[0], &k = operation.operands[1], &v = operation.operands[2];
  if (q.count != 4 || k.count != 4 || v.count != 4) return 0;
  const u64 scores = 2 * dim(q, 0) * dim(q, 1) * dim(q, 2) * dim(k, 2);
  const bool forward = operation.type == kAttention;
  return scores * (dim(q, 3) * (forward ? 1 : 3) + dim(v, 3) * (forward ? 1 : 2));
}

void add_operation(const Entry& operation, GraphWork& work, bool& all_known) {
  u64 flops = 0;
  if (is_convolution(operation.type)) {
    flops = convolution_flops(operation);
    ++work.convolutions;
    work.what = static_cast<u32>(operation.type == kForward        ? ConvolutionKind::Forward
                                 : operation.type == kBackwardData ? ConvolutionKind::BackwardData
                                                                   : ConvolutionKind::BackwardFilter);
    work.input = operation.operands[0];
    work.filter = operation.operands[1];
    work.output = operation.operands[2];
  } else if (operation.type == kProduct) {
    flops = product_flops(operation);
    ++work.products;
  } else if (operation.type == kAttention || operation.type == kAttentionBackward) {
    flops = attention_flops(operation);
    ++work.products;
  } else {
    return;
  }
  if (work.type < 0) work.type = operation.operands[0].type;
  if (work.compute < 0) work.compute = operation.compute;
  all_known = all_known && flops != 0;
  work.flops += flops;
}

void set_operations(Entry& graph, i64 count, const void* operations) {
  GraphWork work{};
  work.type = work.compute = -1;
  bool all_known = true;
  for (i64 i = 0; i < count; ++i) {
    const Entry* operation = find(pointer_at(operations, i));
    if (operation)
      add_operation(*operation, work, all_known);
    else
      all_known = false;  // it might be a product
  }
  if (!all_known) work.flops = 0;
  graph.work = work;
}

void set_operand(Entry& operation, int attribute, const void* values) {
  for (const Operand& operand : kOperands) {
    if (operand.attribute != attribute) continue;
    const Entry* given = find(pointer_at(values, 0));
    if (!given) return;
    if (operand.place < 3)
      operation.operands[operand.place] = given->operands[0];
    else
      operation.compute = given->compute;
  }
}

void set_dims(Entry& tensor, i64 count, const void* values) {
  if (count > kGraphDims) return;
  tensor.operands[0].count = static_cast<i32>(count);
  for (i64 i = 0; i < count; ++i) {
    i64 value;
    std::memcpy(&value, static_cast<const char*>(values) + i * static_cast<i64>(sizeof value), sizeof value);
    tensor.operands[0].dims[i] = value > 0 ? static_cast<u32>(value) : 0;
  }
}

i32 number(const void* values) {
  i32 value;
  std::memcpy(&value, values, sizeof value);
  return value;
}

}  // namespace

void graph_descriptor_made(void* descriptor, int type) {
  const TableLock lock;
  const u64 key = reinterpret_cast<u64>(descriptor);
  if (!lock.held() || key == 0) return;
  Entry* entry = find(descriptor);
  for (u32 i = 0; !entry && i < kEntryProbes; ++i) {
    Entry& free = entries[(entry_place(key) + i) % kEntries];
    if (free.key.load(std::memory_order_relaxed) == 0) entry = &free;
  }
  if (!entry) return;
  forget(*entry, type);
  entry->key.store(key, std::memory_order_relaxed);
}

void graph_descriptor_gone(void* descriptor) {
  const TableLock lock;
  if (!lock.held()) return;
  if (Entry* entry = find(descriptor)) entry->key.store(0, std::memory_order_relaxed);
}

void graph_attribute_set(void* descriptor, int attribute, i64 count, const void* values) {
  const TableLock lock;
  if (!lock.held() || count < 1 || !values) return;
  Entry* entry = find(descriptor);
  if (!entry) return;
  switch (attribute) {
    case kTensorType:
      entry->operands[0].type = number(values);
      return;
    case kTensorDims:
      return set_dims(*entry, count, values);
    case kConvolutionCompute:
      entry->compute = number(values);
      return;
    case kGraphOperations:
      return set_operations(*entry, count, values);
    case kHeuristicGraph:
    case kEngineGraph:
    case kConfigEngine:
    case kPlanConfig: {
      const Entry* given = find(pointer_at(values, 0));
      if (given)
        entry->work = given->work;
      else
        forget(*entry, entry->type);
      return;
    }
    default:
      return set_operand(*entry, attribute, values);
  }
}

void graph_attribute_got(void* descriptor, int attribute, i64 count, const void* values) {
  // Descriptors that the caller made, and the library filled.
  if (attribute != kHeuristicResults && attribute != kConfigEngine && attribute != kPlanConfig) return;
  const TableLock lock;
  const Entry* entry = lock.held() && values ? find(descriptor) : nullptr;
  if (!entry) return;
  for (i64 i = 0; i < count; ++i) {
    if (Entry* filled = find(pointer_at(values, i))) filled->work = entry->work;
  }
}

bool find_graph_work(void* plan, GraphWork& work) {
  const TableLock lock;
  const Entry* entry = lock.held() ? find(plan) : nullptr;
  if (!entry || entry->type != kPlan || entry->work.convolutions + entry->work.products == 0) return false;
  work = entry->work;
  return true;
}

}  // namespace gputrace
