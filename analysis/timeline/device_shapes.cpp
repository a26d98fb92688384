#include "analysis/timeline/device_shapes.h"

#include <cstddef>
#include <cstring>

namespace gputrace {
namespace {

// CUpti_ActivityMemcpyKind
TransferKind transfer_of(u8 kind) {
  switch (kind) {
    case 1:
    case 3:
      return TransferKind::HtoD;
    case 2:
    case 4:
      return TransferKind::DtoH;
    case 5:
    case 6:
    case 7:
    case 8:
      return TransferKind::DtoD;
    case 9:
      return TransferKind::HtoH;
    case 10:
      return TransferKind::PtoP;
    default:
      return TransferKind::Unknown;
  }
}

// CUpti_ActivityMemoryKind
HostMemory memory_of(u32 kind) {
  switch (kind) {
    case 1:
      return HostMemory::Pageable;
    case 2:
      return HostMemory::Pinned;
    case 3:
    case 4:
    case 6:
      return HostMemory::Device;
    case 5:
    case 7:
      return HostMemory::Managed;
    default:
      return HostMemory::Unknown;
  }
}

// A cluster of one block is none.
bool is_clustered(const DeviceKernel& record) {
  return record.cluster_x > 1 || record.cluster_y > 1 || record.cluster_z > 1;
}

}  // namespace

bool is_collective_kernel(std::string_view symbol) {
  return symbol.find("ncclDevKernel") != std::string_view::npos ||
         symbol.find("ncclKernel") != std::string_view::npos || symbol.substr(0, 4) == "nccl";
}

std::size_t DeviceShapes::Hash::operator()(const Key& key) const {
  u64 hash = 0x9e3779b97f4a7c15ull;
  for (const u64 word : key.words) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return hash;
}

DeviceShape& DeviceShapes::intern(const Key& key, bool& fresh) {
  fresh = false;
  if (key == newest_) return shapes_[last_];
  newest_ = key;
  const auto [known, added] = known_.try_emplace(key, static_cast<u32>(shapes_.size()));
  fresh = added;
  last_ = known->second;
  if (added) shapes_.emplace_back();
  return shapes_[last_];
}

// Nearly all kernels are of a shape that came lately: their words are compared as they lie in the record, and what tells them apart
// is put together for those alone that are not.
u32 DeviceShapes::of(const DeviceKernel& record) {
  static_assert(offsetof(DeviceKernel, block_z) == offsetof(DeviceKernel, grid_x) + 20 &&
                offsetof(DeviceKernel, cluster_z) == offsetof(DeviceKernel, registers) + 6);
  const auto word = [bytes = reinterpret_cast<const u8*>(&record)](std::size_t at) {
    u64 read;
    std::memcpy(&read, bytes + at, sizeof read);
    return read;
  };
  constexpr std::size_t kGrid = offsetof(DeviceKernel, grid_x);
  const u64 grid = word(kGrid), middle = word(kGrid + 8), block = word(kGrid + 16);
  const u64 clusters = word(offsetof(DeviceKernel, registers));
  const u64 rest = static_cast<u64>(record.dynamic_shared_bytes) << 32 | record.device;
  const u64 mixed = record.name ^ grid << 20 ^ middle ^ block << 12;
  RecentKernel& recent = recent_[mixed * 0x9e3779b97f4a7c15ull >> 56];
  const u64* const known = recent.words;
  const u64 differs = (known[0] ^ record.name) | (known[1] ^ grid) | (known[2] ^ middle) | (known[3] ^ block) |
                      (known[4] ^ rest) | (known[5] ^ clusters);
  if (differs == 0 && recent.shape != kNone) [[likely]]
    return recent.shape;
  recent = {{record.name, grid, middle, block, rest, clusters}, look_up(record)};
  return recent.shape;
}

[[gnu::noinline]] u32 DeviceShapes::look_up(const DeviceKernel& record) {
  const u64 cluster =
      is_clustered(record) ? static_cast<u64>(record.cluster_x) << 32 | record.cluster_y << 16 | record.cluster_z : 0;
  const u64 x = static_cast<u64>(record.grid_x) << 32 | record.block_x;
  const u64 y = static_cast<u64>(record.grid_y) << 32 | record.block_y;
  const u64 z = static_cast<u64>(record.grid_z) << 32 | record.block_z;
  const u64 rest = static_cast<u64>(record.dynamic_shared_bytes) << 32 | record.device;
  bool fresh = false;
  DeviceShape& shape = intern({{record.name, x, y, z, rest, cluster << 2 | 1}}, fresh);
  if (!fresh) return last_;
  shape.kind = OperationKind::Kernel;
  shape.name = record.name;
  shape.symbol = texts_.find(record.name);
  shape.collective = is_collective_kernel(shape.symbol);
  shape.grid[0] = record.grid_x, shape.grid[1] = record.grid_y, shape.grid[2] = record.grid_z;
  shape.block[0] = record.block_x, shape.block[1] = record.block_y, shape.block[2] = record.block_z;
  if (is_clustered(record))
    shape.cluster[0] = record.cluster_x, shape.cluster[1] = record.cluster_y, shape.cluster[2] = record.cluster_z;
  shape.dynamic_shared = record.dynamic_shared_bytes;
  shape.static_shared = record.static_shared_bytes;
  shape.local_bytes = record.local_bytes;
  shape.registers = record.registers;
  shape.device = static_cast<i32>(record.device);
  return last_;
}

u32 DeviceShapes::of(const DeviceCopy& record) {
  const Key key{{record.kind, record.source_memory, record.destination_memory, record.asynchronous, record.device, 2}};
  bool fresh = false;
  DeviceShape& shape = intern(key, fresh);
  if (!fresh) return last_;
  shape.kind = OperationKind::Copy;
  shape.transfer = transfer_of(record.kind);
  const HostMemory source = memory_of(record.source_memory), destination = memory_of(record.destination_memory);
  switch (shape.transfer) {
    case TransferKind::HtoD:
    case TransferKind::HtoH:
      shape.memory = source;
      break;
    case TransferKind::DtoH:
      shape.memory = destination;
      break;
    case TransferKind::DtoD:
    case TransferKind::PtoP:
      shape.memory = source == HostMemory::Managed || destination == HostMemory::Managed ? HostMemory::Managed
                                                                                         : HostMemory::Device;
      break;
    default:
      break;
  }
  shape.asynchronous = record.asynchronous != 0;
  shape.device = static_cast<i32>(record.device);
  return last_;
}

u32 DeviceShapes::of(const DeviceMemset& record) {
  const Key key{{record.memory, record.asynchronous, record.device, 0, 0, 3}};
  bool fresh = false;
  DeviceShape& shape = intern(key, fresh);
  if (!fresh) return last_;
  shape.kind = OperationKind::Memset;
  shape.transfer = TransferKind::Memset;
  shape.memory = memory_of(record.memory) == HostMemory::Unknown ? HostMemory::Device : memory_of(record.memory);
  shape.asynchronous = record.asynchronous != 0;
  shape.device = static_cast<i32>(record.device);
  return last_;
}

u32 DeviceShapes::of_graph(i32 device) {
  const Key key{{static_cast<u64>(static_cast<u32>(device)), 0, 0, 0, 0, 4}};
  bool fresh = false;
  DeviceShape& shape = intern(key, fresh);
  if (!fresh) return last_;
  shape.kind = OperationKind::Graph;
  shape.device = device;
  return last_;
}

}  // namespace gputrace
