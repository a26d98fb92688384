#pragma once
// CUDA code images as data: what a fatbin holds, and what a cubin or a PTX text says about its kernels and globals.
//   · The bytes are untrusted: every offset and size is checked before it is followed, every count is capped, and
//     nothing here throws for bad input (out of memory aside). What cannot be read is absent, never guessed.
//   · No state, no I/O: any thread may call anything.
//   · Spans handed out point into the span given: the caller keeps those bytes alive.
//
//   fatbin wrapper ─▶ fatbin ─▶ entries {PTX | cubin, sm, raw | LZ4 | zstd} ─▶ pick ─▶ unpack ─▶ read_cubin / read_ptx
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gputrace {

using ByteSpan = std::span<const std::byte>;

enum class ContainerKind : std::uint8_t { kUnknown, kFatbinWrapper, kFatbin, kCubin, kPtx };

// What follows the number in sm_90a, sm_100f: code for exactly that chip, or for its family only.
enum class SmVariant : std::uint8_t { kNone, kArchitecture, kFamily };

// A compute capability as one number: 9.0 is 90, 12.1 is 121.
struct Sm {
  std::uint32_t number = 0;
  SmVariant variant = SmVariant::kNone;
  friend bool operator==(const Sm&, const Sm&) = default;
};

struct CodeParameter {
  std::uint32_t offset = 0;  // from the start of the parameter buffer
  std::uint32_t size = 0;
};

struct ImageKernel {
  std::string symbol;
  std::optional<std::uint32_t> registers;         // per thread; unknown for PTX that nobody compiled
  std::optional<std::uint32_t> local_bytes;       // per thread; unknown for PTX
  std::uint32_t static_shared_bytes = 0;          // what the program asked for: without the KiB that sm_90+ reserves
  std::uint32_t max_threads = 0;                  // .maxntid as a product; 0: not limited by the program
  std::uint32_t required_block[3] = {0, 0, 0};    // .reqntid; 0: none
  std::uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster; 0: none
  std::uint32_t parameter_bytes = 0;              // end of the last parameter
  std::vector<CodeParameter> parameters;          // by ordinal
  ByteSpan code;                                  // machine code (cubin only), inside the image
};

struct CodeGlobal {
  std::string symbol;
  std::uint64_t bytes = 0;
  bool is_constant = false;
  bool is_managed = false;
  std::vector<std::byte> init;  // `bytes` long, or empty: all zero
};

// One cubin or one PTX text, read.
struct CodeModule {
  ContainerKind kind = ContainerKind::kUnknown;  // kCubin or kPtx
  Sm sm;                                         // of a PTX: its .target
  std::uint32_t const_bytes = 0;     // user constant memory of the module (bank 3 of a cubin, .const of a PTX)
  std::vector<ImageKernel> kernels;  // in symbol table order
  std::vector<CodeGlobal> globals;
};

enum class Compression : std::uint8_t { kNone, kLz4, kZstd };

struct FatbinEntry {
  ContainerKind kind = ContainerKind::kUnknown;  // kCubin, kPtx, or kUnknown for kinds that nobody documents
  Sm sm;
  Compression compression = Compression::kNone;
  ByteSpan payload;           // as stored
  std::size_t raw_bytes = 0;  // after unpacking
};

// What `bytes` begins with. A wrapper is known by its magic alone: its pointers are not followed.
ContainerKind identify_image(ByteSpan bytes);

// The extent of an image of which only the address is known (cuModuleLoadData, __cudaRegisterFatBinary), read from
// its own headers; through a wrapper it goes to the fatbin behind. Trusts the pointer, since the API does; the
// result is empty if nothing known lies there.
ByteSpan image_at(const void* image);

// All fatbins behind a wrapper at this address (one, or with -rdc=true the prelinked ones after it). Trusts pointers.
std::vector<ByteSpan> fatbins_of_wrapper(const void* wrapper);

// The entries of a fatbin, or of several fatbins one after the other; stops at the first that is broken.
// nullopt if `bytes` does not begin with a fatbin. `why`, where given, gets one line when something is wrong.
std::optional<std::vector<FatbinEntry>> read_fatbin(ByteSpan bytes, std::string* why = nullptr);

// True if a machine of capability `device` (90 for 9.0) can run this entry: a cubin as it is, PTX by compilation.
bool runs_on(const FatbinEntry& entry, std::uint32_t device);

// The entry that a driver would load: the nearest cubin that runs (exact, else the highest minor below; variants
// before plain ones), else the highest PTX that can be compiled. nullptr: none.
const FatbinEntry* pick_entry(std::span<const FatbinEntry> entries, std::uint32_t device);

// The unpacked bytes; nullopt if they are broken or larger than kMaxImageBytes.
std::optional<std::vector<std::byte>> unpack(const FatbinEntry& entry, std::string* why = nullptr);

std::optional<CodeModule> read_cubin(ByteSpan bytes, std::string* why = nullptr);
std::optional<CodeModule> read_ptx(std::string_view text, std::string* why = nullptr);

// Any image, for a device: identifies, picks, unpacks, reads. For a bare cubin `no_match` is set when it is sound
// but does not run on `device`; for a fatbin when none of its entries does.
struct LoadedImage {
  CodeModule module;
  std::vector<std::byte> bytes;  // the cubin or PTX, owned: module.kernels[].code points into it
};
struct LoadFailure {
  bool no_match = false;  // CUDA_ERROR_NO_BINARY_FOR_GPU; else the image is broken: CUDA_ERROR_INVALID_IMAGE
  std::string why;
};
std::optional<LoadedImage> load_image(ByteSpan bytes, std::uint32_t device, LoadFailure* failure = nullptr);

inline constexpr std::size_t kMaxImageBytes = std::size_t{2} << 30;  // of one unpacked cubin or PTX
inline constexpr std::size_t kMaxFatbinEntries = 65536;
inline constexpr std::size_t kMaxKernels = 1 << 20;
inline constexpr std::size_t kMaxParameters = 8192;  // 32764 bytes of parameters at the most, by the vendor's limit

}  // namespace gputrace
