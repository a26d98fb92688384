// Cubin: an ELF64 file of machine 190. Kernels are FUNC symbols marked as entries; what the assembler knows of each
// lies in attribute sections (.nv.info for all kernels by symbol index, .nv.info.<kernel> for one). An attribute is
//
//   0 u8 format (4: a u16 size and that many bytes follow; else a value of 8 or 16 bits at 2) · 1 u8 attribute · 2 u16
#include <algorithm>

#include "cubin/elf_tables.h"

namespace gputrace {
namespace {

constexpr std::uint8_t kOtherManaged = 0x04;
constexpr std::uint32_t kReservedSharedBytes = 1024;  // the system's own, in every kernel's section where it is there
constexpr std::string_view kReservedSharedSection = ".nv.shared.reserved.0";

enum Attribute : std::uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kParameterInfo = 0x17,
  kParameterBytes = 0x19,
  kRegisters = 0x2f,
  kCtaPerCluster = 0x3d,
  kParameterInfoLarge = 0x45,
};

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

class CubinReader {
 public:
  explicit CubinReader(ByteSpan bytes) : bytes_(bytes), name_budget_(bytes.size() + 65536) {}

  std::optional<CodeModule> read(std::string* why) {
    auto tables = read_elf_tables(bytes_, why);
    if (!tables) return std::nullopt;
    tables_ = std::move(*tables);
    module_.kind = ContainerKind::kCubin;
    module_.sm = tables_.sm;
    if (elf_architecture_specific(tables_)) module_.sm.variant = SmVariant::kArchitecture;
    const char* broken = nullptr;
    if (!add_kernels())
      broken = "the cubin's kernels are broken";
    else if (!add_globals())
      broken = "the cubin's globals are broken";
    if (broken == nullptr) return std::move(module_);
    explain(why, broken);
    return std::nullopt;
  }

 private:
  const ElfSection* find(std::string_view prefix, std::string_view kernel) {
    key_.assign(prefix).append(kernel);
    const auto found = tables_.by_name.find(key_);
    return found == tables_.by_name.end() ? nullptr : &tables_.sections[found->second];
  }

  // Names may share their bytes in a hostile table; together they may not exceed the file by far.
  bool spend(std::string_view name) {
    if (name.empty() || name.size() > name_budget_) return false;
    name_budget_ -= name.size();
    return true;
  }

  bool add_kernels() {
    std::unordered_map<std::uint32_t, std::size_t> by_symbol;
    for (std::size_t i = 0; i < tables_.symbols.size(); ++i) {
      const ElfSymbol& symbol = tables_.symbols[i];
      if (symbol.type != kElfSymbolFunction || (symbol.other & kElfOtherEntry) == 0) continue;
      if (symbol.section >= tables_.sections.size() || module_.kernels.size() >= kMaxKernels || !spend(symbol.name))
        return false;
      by_symbol.emplace(static_cast<std::uint32_t>(i), module_.kernels.size());
      ImageKernel& kernel = module_.kernels.emplace_back();
      kernel.symbol = symbol.name;
      kernel.code = tables_.sections[symbol.section].bytes;
      if (const ElfSection* shared = find(".nv.shared.", symbol.name))
        kernel.static_shared_bytes = shared_bytes(*shared);
      if (const ElfSection* info = find(".nv.info.", symbol.name)) {
        if (!read_attributes(info->bytes, [&](std::uint8_t a, ByteSpan v) { return apply(kernel, a, v); }))
          return false;
      }
      settle_parameters(kernel);
      header_registers(kernel, tables_.sections[symbol.section]);
    }
    for (const ElfSection& section : tables_.sections) {
      if (section.name == ".nv.info" && !read_common(section.bytes, by_symbol)) return false;
    }
    return true;
  }

  std::uint32_t shared_bytes(const ElfSection& shared) const {
    const bool reserves = module_.sm.number >= 90 && tables_.by_name.count(kReservedSharedSection) != 0;
    const std::uint64_t reserved = reserves ? kReservedSharedBytes : 0;
    const std::uint64_t own = shared.size > reserved ? shared.size - reserved : 0;
    return own > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(own);
  }

  template <typename Visit>
  static bool read_attributes(ByteSpan bytes, Visit&& visit) {
    for (std::size_t at = 0; at + 4 <= bytes.size();) {
      const auto format = *read_at<std::uint8_t>(bytes, at);
      const auto attribute = *read_at<std::uint8_t>(bytes, at + 1);
      const bool sized = format == 4;
      const auto value = slice(bytes, sized ? at + 4 : at + 2, sized ? *read_at<std::uint16_t>(bytes, at + 2) : 2);
      if (!value) return false;
      if (!visit(attribute, *value)) return false;
      at += 4 + (sized ? value->size() : 0);
    }
    return true;
  }

  static bool apply(ImageKernel& kernel, std::uint8_t attribute, ByteSpan value) {
    switch (attribute) {
      case kParameterInfo: {
        const auto where = read_at<std::uint32_t>(value, 4), what = read_at<std::uint32_t>(value, 8);
        return !what || set_parameter(kernel, *where & 0xffff, {*where >> 16, *what >> 18});
      }
      case kParameterInfoLarge: {
        const auto ordinal = read_at<std::uint16_t>(value, 4), offset = read_at<std::uint16_t>(value, 6);
        const auto size = read_at<std::uint16_t>(value, 8);
        return !size || set_parameter(kernel, *ordinal, {*offset, *size});
      }
      case kParameterBytes:
        kernel.parameter_bytes = read_at<std::uint16_t>(value, 0).value_or(0);
        return true;
      case kMaxThreads: {
        const std::uint64_t x = read_at<std::uint32_t>(value, 0).value_or(0),
                            y = read_at<std::uint32_t>(value, 4).value_or(1);
        const std::uint64_t z = read_at<std::uint32_t>(value, 8).value_or(1);
        if (x <= 1024 && y <= 1024 && z <= 1024) kernel.max_threads = static_cast<std::uint32_t>(x * y * z);
        return true;
      }
      case kRequiredThreads:
        read_triple(value, kernel.required_block);
        return true;
      case kCtaPerCluster:
        read_triple(value, kernel.required_cluster);
        return true;
      default:
        return true;
    }
  }

  static void read_triple(ByteSpan value, std::uint32_t (&out)[3]) {
    for (std::size_t i = 0; i < 3; ++i) out[i] = read_at<std::uint32_t>(value, i * 4).value_or(1);
  }

  static bool set_parameter(ImageKernel& kernel, std::uint32_t ordinal, CodeParameter parameter) {
    if (ordinal >= kMaxParameters) return false;
    if (kernel.parameters.size() <= ordinal) kernel.parameters.resize(ordinal + 1);
    kernel.parameters[ordinal] = parameter;
    return true;
  }

  static void settle_parameters(ImageKernel& kernel) {
    for (const CodeParameter& p : kernel.parameters) {
      kernel.parameter_bytes = std::max(kernel.parameter_bytes, p.offset + p.size);
    }
  }

  // Older assemblers, and the hand-tuned kernels of the vendor's libraries, keep the register count in the section
  // header alone; where .nv.info has it, that wins.
  static void header_registers(ImageKernel& kernel, const ElfSection& text) {
    if ((text.info >> 24) != 0) kernel.registers = text.info >> 24;
  }

  bool read_common(ByteSpan info, const std::unordered_map<std::uint32_t, std::size_t>& by_symbol) {
    return read_attributes(info, [&](std::uint8_t attribute, ByteSpan value) {
      const auto symbol = read_at<std::uint32_t>(value, 0), number = read_at<std::uint32_t>(value, 4);
      if (!number || (attribute != kRegisters && attribute != kFrameSize)) return true;
      const auto found = by_symbol.find(*symbol);
      if (found == by_symbol.end()) return true;  // a device function's
      ImageKernel& kernel = module_.kernels[found->second];
      (attribute == kRegisters ? kernel.registers : kernel.local_bytes) = *number;
      return true;
    });
  }

  bool add_globals() {
    std::uint64_t init_budget = bytes_.size();
    for (const ElfSection& section : tables_.sections) {
      if (section.name == ".nv.constant3") module_.const_bytes = static_cast<std::uint32_t>(section.size & 0xffffffff);
    }
    for (const ElfSymbol& symbol : tables_.symbols) {
      if (symbol.type != kElfSymbolObject || symbol.section == 0 || symbol.section >= tables_.sections.size()) continue;
      const ElfSection& section = tables_.sections[symbol.section];
      const bool constant = section.name == ".nv.constant3";
      if (!constant && !starts_with(section.name, ".nv.global")) continue;
      const std::uint64_t offset = symbol.value - section.address;
      if (symbol.size > section.size || offset > section.size - symbol.size || !spend(symbol.name)) return false;
      CodeGlobal global{std::string(symbol.name), symbol.size, constant, (symbol.other & kOtherManaged) != 0, {}};
      if (!elf_has_no_bits(section.type)) {
        const auto init = slice(section.bytes, offset, symbol.size);
        if (!init || init->size() > init_budget) return false;
        init_budget -= init->size();
        global.init.assign(init->begin(), init->end());
      }
      module_.globals.push_back(std::move(global));
    }
    return true;
  }

  ByteSpan bytes_;
  std::size_t name_budget_;
  ElfTables tables_;
  std::string key_;
  CodeModule module_;
};

}  // namespace

std::optional<CodeModule> read_cubin(ByteSpan bytes, std::string* why) { return CubinReader(bytes).read(why); }

}  // namespace gputrace
