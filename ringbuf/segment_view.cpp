#include "ringbuf/segment_view.h"

#include <sys/mman.h>

#include <boost/interprocess/mapped_region.hpp>

#include <cstring>
#include <exception>

#include "ringbuf/host_table.h"

namespace gputrace {
namespace {

namespace ipc = boost::interprocess;

constexpr u64 kMaxSegment = 8ull << 30;
constexpr u64 kMaxText = 64ull << 20;

// What mapped_region wants to see of a descriptor; Boost's own file_mapping would open a path.
class MappableFd {
 public:
  explicit MappableFd(int fd) : fd_(fd) {}
  ipc::mapping_handle_t get_mapping_handle() const { return {fd_, false}; }

 private:
  int fd_;
};

bool within(u64 offset, u64 count, u64 each, u64 size) { return offset <= size && count <= (size - offset) / each; }

const char* what_is_wrong(const SegmentHeader& h, u64 size) {
  if (h.magic != kSegmentMagic) return "is no segment of gputrace";
  if (h.version != kSegmentVersion) return "is of another version of gputrace than the sidecar";
  if (h.header_size < sizeof(SegmentHeader) || h.segment_size > size || h.slot_size != sizeof(ThreadSlot))
    return "has another layout than the sidecar's";
  if (h.slot_count < 1 || h.slot_count > 2 * kMaxSlots || h.block_count < 1) return "has a header that makes no sense";
  if (h.block_size < 4096 || h.block_size % 4096 || h.block_size > (16u << 20))
    return "has blocks of a size that makes no sense";
  if ((h.control_offset | h.slots_offset | h.blocks_offset) % 64 || h.block_states_offset % 8)
    return "has offsets that are not aligned";
  if (h.host_table_size != 0 &&
      (h.host_table_size < kLeastHostTable || h.host_table_size > kMostHostTable || h.host_table_offset % 64 ||
       !within(h.host_table_offset, h.host_table_size, 1, h.segment_size)))
    return "has a table of host calls that makes no sense";
  if (h.schema_size > kMaxText || h.info_size > kMaxText) return "has too much text";
  if (!within(h.control_offset, 1, sizeof(SegmentControl), h.segment_size) ||
      !within(h.text_offset, h.schema_size + h.info_size, 1, h.segment_size) ||
      !within(h.slots_offset, h.slot_count, sizeof(ThreadSlot), h.segment_size) ||
      !within(h.block_states_offset, h.block_count, sizeof(u64), h.segment_size) ||
      !within(h.blocks_offset, h.block_count, h.block_size, h.segment_size))
    return "has parts beyond its end";
  return nullptr;
}

}  // namespace

Result<SegmentView, std::string> SegmentView::map(int fd) {
  try {
    auto region = std::make_shared<ipc::mapped_region>(MappableFd(fd), ipc::read_write);
    auto view = over(region->get_address(), region->get_size());
    if (view) view.value().mapping_ = std::move(region);
    return view;
  } catch (const std::exception& error) {
    return Failure{std::string("cannot be mapped: ") + error.what()};
  }
}

Result<SegmentView, std::string> SegmentView::over(void* memory, u64 size) {
  if (size < sizeof(SegmentHeader) || size > kMaxSegment) return Failure{std::string("has a size that makes no sense")};
  SegmentView view;
  view.base_ = static_cast<char*>(memory);
  std::memcpy(&view.header_, memory, sizeof view.header_);
  if (const char* wrong = what_is_wrong(view.header_, size)) return Failure{std::string(wrong)};
  return view;
}

void SegmentView::keep_from_children() const { (void)::madvise(base_, header_.segment_size, MADV_DONTFORK); }

}  // namespace gputrace
