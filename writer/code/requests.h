// What the sidecar asks of the code scanner, and in what form.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "trace/code_check.h"

namespace gputrace {

inline constexpr u64 kMaxCopiedImages = kCodeBudgetOfWanted;  // bytes of all images that came through the ring

// An image as CodeImage tells it, with what its text ids stand for.
struct CodeImageRequest {
  u64 id = 0;
  u32 kind = 0;  // ImageKind
  u64 offset = 0, bytes = 0, check = 0;
  std::string path;      // empty: `content` holds it
  std::string build_id;  // hex; empty: not known
  std::vector<u8> content;
};

class CodeRequests {
 public:
  virtual ~CodeRequests() = default;
  virtual void device(u32 capability) = 0;  // 90 for 9.0
  virtual void image(CodeImageRequest&& image) = 0;
  // The facts of one kernel are wanted; `name` is a text id.
  virtual void kernel(u64 image, u64 name) = 0;
};

// The pipe carries messages: this, then `size` bytes.
enum class CodeMessage : u32 { Device = 1, Image = 2, Kernel = 3 };
struct CodeMessageHeader {
  CodeMessage what;
  u32 size;
};
struct CodeKernelMessage {
  u64 image, name;
};
// Followed by the path, the build id and the content.
struct CodeImageMessage {
  u64 id, offset, bytes, check;
  u32 kind;
  u32 path_size, build_id_size, content_size;
};
inline constexpr u32 kMaxCodeMessage = (16u << 20);
static_assert(kMaxCodeCopy + (64u << 10) < kMaxCodeMessage);
// What comes back are records: CodeKernel and CodeScan, their times not filled in.

}  // namespace gputrace
