#include "cubin/elf_tables.h"

namespace gputrace {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kSectionSymbols = 2;
constexpr std::uint32_t kSectionNoBits = 8;
constexpr std::uint32_t kSectionGlobal = 0x70000007;  // these three are the NOBITS of relocatable cubins
constexpr std::uint32_t kSectionLocal = 0x70000009;
constexpr std::uint32_t kSectionShared = 0x7000000a;
constexpr std::uint32_t kSectionSymbolIndexes = 18;
// e_flags of compilers before CUDA 13, by the file's ABI version: code for exactly this chip ("sm_90a").
constexpr std::uint32_t kFlagArchitectureAbi7 = 0x800;
constexpr std::uint32_t kFlagArchitectureAbi8 = 0x8;

bool read_header(ByteSpan bytes, ElfTables& tables) {
  const auto magic = read_at<std::uint32_t>(bytes, 0);
  const auto elf_class = read_at<std::uint16_t>(bytes, 4);  // class and byte order
  const auto machine = read_at<std::uint16_t>(bytes, 18);
  const auto flags = read_at<std::uint32_t>(bytes, 48);
  if (magic != 0x464C457Fu || elf_class != 0x0102 || machine != kMachineCuda || !flags) return false;
  const auto abi = std::to_integer<std::uint8_t>(bytes[8]);
  tables.sm.number = abi >= 8 ? (*flags >> 8) & 0xff : *flags & 0xff;
  tables.architecture_flag = (*flags & (abi >= 8 ? kFlagArchitectureAbi8 : kFlagArchitectureAbi7)) != 0;
  return tables.sm.number != 0;
}

bool read_sections(ByteSpan bytes, ElfTables& tables) {
  const auto table = read_at<std::uint64_t>(bytes, 40);
  const auto entry = read_at<std::uint16_t>(bytes, 58);
  const auto count16 = read_at<std::uint16_t>(bytes, 60);
  const auto names16 = read_at<std::uint16_t>(bytes, 62);
  if (!names16 || *entry != 64 || *table > bytes.size()) return false;
  const ByteSpan headers = bytes.subspan(static_cast<std::size_t>(*table));
  // A file with more sections than 16 bits hold keeps the true numbers in the first section's header.
  const std::uint64_t count = *count16 != 0 ? *count16 : read_at<std::uint64_t>(headers, 32).value_or(0);
  const std::uint32_t names = *names16 != 0xffff ? *names16 : read_at<std::uint32_t>(headers, 40).value_or(0);
  if (count == 0 || count > headers.size() / 64 || names >= count) return false;
  std::vector<std::uint32_t> name_offsets;
  name_offsets.reserve(static_cast<std::size_t>(count));
  tables.sections.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const ByteSpan header = headers.subspan(i * 64, 64);
    ElfSection section;
    name_offsets.push_back(*read_at<std::uint32_t>(header, 0));
    section.type = *read_at<std::uint32_t>(header, 4);
    section.address = *read_at<std::uint64_t>(header, 16);
    section.size = *read_at<std::uint64_t>(header, 32);
    section.link = *read_at<std::uint32_t>(header, 40);
    section.info = *read_at<std::uint32_t>(header, 44);
    if (!elf_has_no_bits(section.type)) {
      const auto content = slice(bytes, *read_at<std::uint64_t>(header, 24), section.size);
      if (!content) return false;
      section.bytes = *content;
    }
    tables.sections.push_back(section);
  }
  for (std::size_t i = 0; i < count; ++i) {
    tables.sections[i].name = string_at(tables.sections[names].bytes, name_offsets[i]);
    tables.by_name.emplace(tables.sections[i].name, static_cast<std::uint32_t>(i));
  }
  return true;
}

ByteSpan wide_indexes_of(const ElfTables& tables, std::uint32_t symbol_table) {
  for (const ElfSection& section : tables.sections) {
    if (section.type == kSectionSymbolIndexes && section.link == symbol_table) return section.bytes;
  }
  return {};
}

bool read_symbols(ElfTables& tables) {
  for (std::size_t i = 0; i < tables.sections.size(); ++i) {
    const ElfSection& table = tables.sections[i];
    if (table.type != kSectionSymbols) continue;
    if (table.link >= tables.sections.size()) return false;
    const ByteSpan strings = tables.sections[table.link].bytes;
    const ByteSpan wide = wide_indexes_of(tables, static_cast<std::uint32_t>(i));
    tables.symbols.reserve(table.bytes.size() / 24);
    for (std::size_t at = 0; at + 24 <= table.bytes.size(); at += 24) {
      ElfSymbol symbol;
      symbol.name = string_at(strings, *read_at<std::uint32_t>(table.bytes, at));
      symbol.type = *read_at<std::uint8_t>(table.bytes, at + 4) & 0xf;
      symbol.other = *read_at<std::uint8_t>(table.bytes, at + 5);
      symbol.section = *read_at<std::uint16_t>(table.bytes, at + 6);
      if (symbol.section == 0xffff) symbol.section = read_at<std::uint32_t>(wide, at / 24 * 4).value_or(0);
      symbol.value = *read_at<std::uint64_t>(table.bytes, at + 8);
      symbol.size = *read_at<std::uint64_t>(table.bytes, at + 16);
      tables.symbols.push_back(symbol);
    }
    return true;
  }
  return true;  // no symbols: no kernels, but a sound file
}

}  // namespace

bool elf_has_no_bits(std::uint32_t type) {
  return type == 0 || type == kSectionNoBits || type == kSectionGlobal || type == kSectionLocal ||
         type == kSectionShared;
}

const ElfSection* ElfTables::find(std::string_view name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &sections[found->second];
}

std::optional<ElfTables> read_elf_tables(ByteSpan bytes, std::string* why) {
  ElfTables tables;
  const char* broken = nullptr;
  if (!read_header(bytes, tables))
    broken = "not a cubin";
  else if (!read_sections(bytes, tables))
    broken = "the section table of the cubin is broken";
  else if (!read_symbols(tables))
    broken = "the symbol table of the cubin is broken";
  if (broken == nullptr) return tables;
  explain(why, broken);
  return std::nullopt;
}

bool elf_architecture_specific(const ElfTables& tables) {
  constexpr std::uint8_t kArchitectureSpecific = 0x09;
  if (tables.architecture_flag) return true;
  const ElfSection* compat = tables.find(".nv.compat");
  if (compat == nullptr) return false;
  for (std::size_t at = 0; at + 4 <= compat->bytes.size();) {
    const auto format = *read_at<std::uint8_t>(compat->bytes, at);
    const auto attribute = *read_at<std::uint8_t>(compat->bytes, at + 1);
    const auto size = format == 4 ? *read_at<std::uint16_t>(compat->bytes, at + 2) : 0;
    const auto value = read_at<std::uint8_t>(compat->bytes, format == 4 ? at + 4 : at + 2);
    if (attribute == kArchitectureSpecific && value == std::uint8_t{1}) return true;
    at += 4 + size;
  }
  return false;
}

}  // namespace gputrace
