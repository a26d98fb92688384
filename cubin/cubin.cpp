// Cubin: an ELF64 file of machine 190. Kernels are FUNC symbols marked as entries; what the assembler knows of each
// lies in attribute sections (.nv.info for all kernels by symbol index, .nv.info.<kernel> for one). An attribute is
//
//   0 u8 format (4: a u16 size and that many bytes follow; else a value of 8 or 16 bits at 2) · 1 u8 attribute · 2 u16
#include <unordered_map>

#include "cubin/bytes.h"

namespace gputrace {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kSectionSymbols = 2;
constexpr std::uint32_t kSectionNoBits = 8;
constexpr std::uint32_t kSectionGlobal = 0x70000007;  // these three are the NOBITS of relocatable cubins
constexpr std::uint32_t kSectionLocal = 0x70000009;
constexpr std::uint32_t kSectionShared = 0x7000000a;
constexpr std::uint32_t kSectionSymbolIndexes = 18;
constexpr std::uint8_t kSymbolObject = 1;
constexpr std::uint8_t kSymbolFunction = 2;
constexpr std::uint8_t kOtherManaged = 0x04;
constexpr std::uint8_t kOtherEntry = 0x10;
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

bool has_no_bits(std::uint32_t type) {
  return type == 0 || type == kSectionNoBits || type == kSectionGlobal || type == kSectionLocal ||
         type == kSectionShared;
}

struct Section {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  ByteSpan bytes;  // empty for NOBITS
};

struct Symbol {
  std::string_view name;
  std::uint8_t type = 0;
  std::uint8_t other = 0;
  std::uint32_t section = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

class CubinReader {
 public:
  explicit CubinReader(ByteSpan bytes) : bytes_(bytes), name_budget_(bytes.size() + 65536) {}

  std::optional<CodeModule> read(std::string* why) {
    const char* broken = nullptr;
    if (!read_header())
      broken = "not a cubin";
    else if (!read_sections())
      broken = "the section table of the cubin is broken";
    else if (!read_symbols())
      broken = "the symbol table of the cubin is broken";
    else if (!add_kernels())
      broken = "the cubin's kernels are broken";
    else if (!add_globals())
      broken = "the cubin's globals are broken";
    if (broken == nullptr) return std::move(module_);
    explain(why, broken);
    return std::nullopt;
  }

 private:
  bool read_header() {
    const auto magic = read_at<std::uint32_t>(bytes_, 0);
    const auto elf_class = read_at<std::uint16_t>(bytes_, 4);  // class and byte order
    const auto machine = read_at<std::uint16_t>(bytes_, 18);
    const auto flags = read_at<std::uint32_t>(bytes_, 48);
    if (magic != 0x464C457Fu || elf_class != 0x0102 || machine != kMachineCuda || !flags) return false;
    const auto abi = std::to_integer<std::uint8_t>(bytes_[8]);
    module_.kind = ImageKind::kCubin;
    module_.sm.number = abi >= 8 ? (*flags >> 8) & 0xff : *flags & 0xff;
    return module_.sm.number != 0;
  }

  bool read_sections() {
    const auto table = read_at<std::uint64_t>(bytes_, 40);
    const auto entry = read_at<std::uint16_t>(bytes_, 58);
    const auto count16 = read_at<std::uint16_t>(bytes_, 60);
    const auto names16 = read_at<std::uint16_t>(bytes_, 62);
    if (!names16 || *entry != 64 || *table > bytes_.size()) return false;
    const ByteSpan headers = bytes_.subspan(static_cast<std::size_t>(*table));
    // A file with more sections than 16 bits hold keeps the true numbers in the first section's header.
    const std::uint64_t count = *count16 != 0 ? *count16 : read_at<std::uint64_t>(headers, 32).value_or(0);
    const std::uint32_t names = *names16 != 0xffff ? *names16 : read_at<std::uint32_t>(headers, 40).value_or(0);
    if (count == 0 || count > headers.size() / 64 || names >= count) return false;
    std::vector<std::uint32_t> name_offsets;
    for (std::size_t i = 0; i < count; ++i) {
      const ByteSpan header = headers.subspan(i * 64, 64);
      Section section;
      name_offsets.push_back(*read_at<std::uint32_t>(header, 0));
      section.type = *read_at<std::uint32_t>(header, 4);
      section.address = *read_at<std::uint64_t>(header, 16);
      section.size = *read_at<std::uint64_t>(header, 32);
      section.link = *read_at<std::uint32_t>(header, 40);
      section.info = *read_at<std::uint32_t>(header, 44);
      if (!has_no_bits(section.type)) {
        const auto content = slice(bytes_, *read_at<std::uint64_t>(header, 24), section.size);
        if (!content) return false;
        section.bytes = *content;
      }
      sections_.push_back(section);
    }
    for (std::size_t i = 0; i < count; ++i) {
      sections_[i].name = string_at(sections_[names].bytes, name_offsets[i]);
      by_name_.emplace(sections_[i].name, static_cast<std::uint32_t>(i));
    }
    return true;
  }

  bool read_symbols() {
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Section& table = sections_[i];
      if (table.type != kSectionSymbols) continue;
      if (table.link >= sections_.size()) return false;
      const ByteSpan strings = sections_[table.link].bytes;
      const ByteSpan wide = wide_indexes_of(static_cast<std::uint32_t>(i));
      symbols_.reserve(table.bytes.size() / 24);
      for (std::size_t at = 0; at + 24 <= table.bytes.size(); at += 24) {
        Symbol symbol;
        symbol.name = string_at(strings, *read_at<std::uint32_t>(table.bytes, at));
        symbol.type = *read_at<std::uint8_t>(table.bytes, at + 4) & 0xf;
        symbol.other = *read_at<std::uint8_t>(table.bytes, at + 5);
        symbol.section = *read_at<std::uint16_t>(table.bytes, at + 6);
        if (symbol.section == 0xffff) symbol.section = read_at<std::uint32_t>(wide, at / 24 * 4).value_or(0);
        symbol.value = *read_at<std::uint64_t>(table.bytes, at + 8);
        symbol.size = *read_at<std::uint64_t>(table.bytes, at + 16);
        symbols_.push_back(symbol);
      }
      return true;
    }
    return true;  // no symbols: no kernels, but a sound file
  }

  ByteSpan wide_indexes_of(std::uint32_t symbol_table) const {
    for (const Section& section : sections_) {
      if (section.type == kSectionSymbolIndexes && section.link == symbol_table) return section.bytes;
    }
    return {};
  }

  const Section* find(std::string_view prefix, std::string_view kernel) {
    key_.assign(prefix).append(kernel);
    const auto found = by_name_.find(key_);
    return found == by_name_.end() ? nullptr : &sections_[found->second];
  }

  // Names may share their bytes in a hostile table; together they may not exceed the file by far.
  bool spend(std::string_view name) {
    if (name.empty() || name.size() > name_budget_) return false;
    name_budget_ -= name.size();
    return true;
  }

  bool add_kernels() {
    std::unordered_map<std::uint32_t, std::size_t> by_symbol;
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      const Symbol& symbol = symbols_[i];
      if (symbol.type != kSymbolFunction || (symbol.other & kOtherEntry) == 0) continue;
      if (symbol.section >= sections_.size() || module_.kernels.size() >= kMaxKernels || !spend(symbol.name))
        return false;
      by_symbol.emplace(static_cast<std::uint32_t>(i), module_.kernels.size());
      CodeKernel& kernel = module_.kernels.emplace_back();
      kernel.symbol = symbol.name;
      kernel.code = sections_[symbol.section].bytes;
      if (const Section* shared = find(".nv.shared.", symbol.name)) kernel.static_shared_bytes = shared_bytes(*shared);
      if (const Section* info = find(".nv.info.", symbol.name)) {
        if (!read_attributes(info->bytes, [&](std::uint8_t a, ByteSpan v) { return apply(kernel, a, v); }))
          return false;
      }
      settle_parameters(kernel);
      header_registers(kernel, sections_[symbol.section]);
    }
    for (const Section& section : sections_) {
      if (section.name == ".nv.info" && !read_common(section.bytes, by_symbol)) return false;
    }
    return true;
  }

  std::uint32_t shared_bytes(const Section& shared) const {
    const bool reserves = module_.sm.number >= 90 && by_name_.count(kReservedSharedSection) != 0;
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

  static bool apply(CodeKernel& kernel, std::uint8_t attribute, ByteSpan value) {
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

  static bool set_parameter(CodeKernel& kernel, std::uint32_t ordinal, CodeParameter parameter) {
    if (ordinal >= kMaxParameters) return false;
    if (kernel.parameters.size() <= ordinal) kernel.parameters.resize(ordinal + 1);
    kernel.parameters[ordinal] = parameter;
    return true;
  }

  static void settle_parameters(CodeKernel& kernel) {
    for (const CodeParameter& p : kernel.parameters) {
      kernel.parameter_bytes = std::max(kernel.parameter_bytes, p.offset + p.size);
    }
  }

  // Older assemblers, and the hand-tuned kernels of the vendor's libraries, keep the register count in the section
  // header alone; where .nv.info has it, that wins.
  static void header_registers(CodeKernel& kernel, const Section& text) {
    if ((text.info >> 24) != 0) kernel.registers = text.info >> 24;
  }

  bool read_common(ByteSpan info, const std::unordered_map<std::uint32_t, std::size_t>& by_symbol) {
    return read_attributes(info, [&](std::uint8_t attribute, ByteSpan value) {
      const auto symbol = read_at<std::uint32_t>(value, 0), number = read_at<std::uint32_t>(value, 4);
      if (!number || (attribute != kRegisters && attribute != kFrameSize)) return true;
      const auto found = by_symbol.find(*symbol);
      if (found == by_symbol.end()) return true;  // a device function's
      CodeKernel& kernel = module_.kernels[found->second];
      (attribute == kRegisters ? kernel.registers : kernel.local_bytes) = *number;
      return true;
    });
  }

  bool add_globals() {
    std::uint64_t init_budget = bytes_.size();
    for (const Section& section : sections_) {
      if (section.name == ".nv.constant3") module_.const_bytes = static_cast<std::uint32_t>(section.size & 0xffffffff);
      if (section.name == ".nv.compat") read_variant(section.bytes);
    }
    for (const Symbol& symbol : symbols_) {
      if (symbol.type != kSymbolObject || symbol.section == 0 || symbol.section >= sections_.size()) continue;
      const Section& section = sections_[symbol.section];
      const bool constant = section.name == ".nv.constant3";
      if (!constant && !starts_with(section.name, ".nv.global")) continue;
      const std::uint64_t offset = symbol.value - section.address;
      if (symbol.size > section.size || offset > section.size - symbol.size || !spend(symbol.name)) return false;
      CodeGlobal global{std::string(symbol.name), symbol.size, constant, (symbol.other & kOtherManaged) != 0, {}};
      if (!has_no_bits(section.type)) {
        const auto init = slice(section.bytes, offset, symbol.size);
        if (!init || init->size() > init_budget) return false;
        init_budget -= init->size();
        global.init.assign(init->begin(), init->end());
      }
      module_.globals.push_back(std::move(global));
    }
    return true;
  }

  void read_variant(ByteSpan compat) {
    constexpr std::uint8_t kArchitectureSpecific = 0x09;
    read_attributes(compat, [&](std::uint8_t attribute, ByteSpan value) {
      if (attribute == kArchitectureSpecific && read_at<std::uint8_t>(value, 0) == std::uint8_t{1}) {
        module_.sm.variant = SmVariant::kArchitecture;
      }
      return true;
    });
  }

  ByteSpan bytes_;
  std::size_t name_budget_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string_view, std::uint32_t> by_name_;
  std::string key_;
  CodeModule module_;
};

}  // namespace

std::optional<CodeModule> read_cubin(ByteSpan bytes, std::string* why) { return CubinReader(bytes).read(why); }

}  // namespace gputrace
