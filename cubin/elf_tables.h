#pragma once
// The tables of a cubin's ELF file, bounds-checked: sections and symbols. What they mean is up to the reader.
#include <unordered_map>

#include "cubin/bytes.h"

namespace gputrace {

inline constexpr std::uint8_t kElfSymbolObject = 1;
inline constexpr std::uint8_t kElfSymbolFunction = 2;
inline constexpr std::uint8_t kElfOtherEntry = 0x10;  // of a function symbol: a kernel
inline constexpr std::uint32_t kElfRelaSection = 4;
inline constexpr std::uint32_t kElfRelSection = 9;

// True for sections that have a size and no bytes in the file.
bool elf_has_no_bits(std::uint32_t type);

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  ByteSpan bytes;  // empty for NOBITS
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t type = 0;
  std::uint8_t other = 0;
  std::uint32_t section = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

struct ElfTables {
  Sm sm;                           // without its variant
  bool architecture_flag = false;  // e_flags say: for exactly this chip
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;
  std::unordered_map<std::string_view, std::uint32_t> by_name;  // the first section of each name

  const ElfSection* find(std::string_view name) const;
};

// nullopt if this is no cubin or its tables are broken; `why` says which. Spans point into `bytes`.
std::optional<ElfTables> read_elf_tables(ByteSpan bytes, std::string* why = nullptr);

// Code for exactly this chip: attribute 9 of .nv.compat since CUDA 13, a bit of e_flags before.
bool elf_architecture_specific(const ElfTables& tables);

}  // namespace gputrace
