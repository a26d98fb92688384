// From any image to one readable module for one device.
#include "cubin/bytes.h"

namespace gputrace {
namespace {

void fail(LoadFailure* failure, bool no_match, std::string why) {
  if (failure != nullptr) *failure = LoadFailure{no_match, std::move(why)};
}

std::optional<CodeModule> read_module(ContainerKind kind, ByteSpan bytes, std::string* why) {
  if (kind == ContainerKind::kCubin) return read_cubin(bytes, why);
  return read_ptx({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, why);
}

bool module_runs_on(const CodeModule& module, std::uint32_t device) {
  FatbinEntry entry;
  entry.kind = module.kind;
  entry.sm = module.sm;
  return runs_on(entry, device);
}

std::string sm_text(std::uint32_t sm) { return "sm_" + std::to_string(sm); }

}  // namespace

std::optional<LoadedImage> load_image(ByteSpan bytes, std::uint32_t device, LoadFailure* failure) {
  LoadedImage loaded;
  const ContainerKind kind = identify_image(bytes);
  ContainerKind code = kind;
  std::string why;
  if (kind == ContainerKind::kFatbin) {
    const auto entries = read_fatbin(bytes, &why);
    const FatbinEntry* entry = entries ? pick_entry(*entries, device) : nullptr;
    if (entry == nullptr) {
      fail(failure, why.empty(), why.empty() ? "the fatbin holds nothing that runs on " + sm_text(device) : why);
      return std::nullopt;
    }
    auto raw = unpack(*entry, &why);
    if (!raw) {
      fail(failure, false, why);
      return std::nullopt;
    }
    loaded.bytes = std::move(*raw);
    code = entry->kind;
  } else if (kind == ContainerKind::kCubin || kind == ContainerKind::kPtx) {
    loaded.bytes.assign(bytes.begin(), bytes.end());
  } else {
    fail(failure, false, "neither fatbin, cubin nor PTX");
    return std::nullopt;
  }
  auto module = read_module(code, loaded.bytes, &why);
  if (!module || !module_runs_on(*module, device)) {
    fail(failure, module.has_value(), module ? "the image is for another chip than " + sm_text(device) : why);
    return std::nullopt;
  }
  loaded.module = std::move(*module);
  return loaded;
}

}  // namespace gputrace
