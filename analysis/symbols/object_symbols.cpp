#include "analysis/symbols/object_symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "analysis/names/demangle.h"
#include "analysis/symbols/scopes.h"
#include "trace/build_id.h"

namespace gputrace {
// A file, its ELF handle, its DWARF. Any of them may be missing.
struct ElfImage {
  int file = -1;
  Elf* elf = nullptr;
  Dwarf* dwarf = nullptr;

  ElfImage() = default;
  ElfImage(const ElfImage&) = delete;
  ElfImage& operator=(const ElfImage&) = delete;
  ~ElfImage() {
    if (dwarf) dwarf_end(dwarf);
    if (elf) elf_end(elf);
    if (file >= 0) ::close(file);
  }

  bool open(const std::string& path, const std::string& build_id) {
    struct stat about {};  // before it is opened: opening alone does something to some devices
    if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
    file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0 || ::fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    const auto read = [this](u64 offset, void* out, u64 bytes) {
      return ::pread(file, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
    };
    BuildId own{};
    if (build_id.empty() || !find_build_id(read, own) || build_id != own) return false;
    elf = elf_begin(file, ELF_C_READ, nullptr);
    return elf != nullptr && elf_kind(elf) == ELF_K_ELF;
  }
};

struct FunctionSymbol {
  u64 begin = 0, size = 0;
  const char* name = nullptr;
};

namespace {

void read_symbols(Elf* elf, u32 type, std::vector<FunctionSymbol>& symbols) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (!gelf_getshdr(section, &header) || header.sh_type != type || header.sh_entsize == 0 ||
        header.sh_size > ObjectSymbols::kMostBytes)
      continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    const u64 count = data ? header.sh_size / header.sh_entsize : 0;
    for (u64 i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (!gelf_getsym(data, static_cast<int>(i), &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
          symbol.st_shndx == SHN_UNDEF)
        continue;
      const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (name && *name) symbols.push_back({symbol.st_value, symbol.st_size, name});
    }
  }
}

// "ns::step(int) const" is "ns::step", and so is "step.constprop.0", a copy that the compiler made, "step".
std::string plain_name(const std::string& signature) {
  for (const char* copy : {".constprop.", ".isra.", ".part.", ".cold"}) {
    if (const std::size_t at = signature.find(copy); at != std::string::npos && at != 0) return signature.substr(0, at);
  }
  std::size_t end = signature.rfind(')');
  if (end == std::string::npos) return signature;
  for (std::size_t at = end + 1, depth = 0; at-- > 0;) {
    if (signature[at] == ')') ++depth;
    if (signature[at] == '(' && --depth == 0) return at == 0 ? signature : signature.substr(0, at);
  }
  return signature;
}

// Whether somebody else wrote it than the author of `source`, the file that was compiled: the system's headers, what the package managers of
// Rust and Go bring (rustc calls its own library /rustc/HASH), and those of a library or a package, which lie in an "include" whose folder
// `source` is not in. Both without "..".
bool is_others_source(const std::string& file, const std::string& source) {
  constexpr std::string_view kInclude = "/include/";
  if (file.starts_with("/usr/")) return !file.starts_with("/usr/src/") && !file.starts_with("/usr/local/src/");
  if (file.starts_with("/rustc/") || file.starts_with("/rust/deps/")) return true;
  for (const std::string_view packages : {"/.cargo/registry/src/", "/.cargo/git/checkouts/", "/go/pkg/mod/"})
    if (file.find(packages) != std::string::npos) return true;
  const std::size_t at = file.rfind(kInclude);  // of the nested ones the innermost: nearest to what uses it
  return at != std::string::npos && !source.starts_with(file.substr(0, at + 1));
}

// The folder in which the compiler ran, which the unit's relative paths begin from.
std::string folder_of(Dwarf_Die* unit) {
  Dwarf_Attribute attribute;
  const char* const folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
  return folder ? folder : "";
}

std::string plain_path(const std::string& folder, const char* path) {
  return (std::filesystem::path(folder) / path).lexically_normal();
}

u64 number_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

// Of a function that was inlined: as its compiler writes it to an object's symbols, without parameters. "": not known.
std::string inlined_function(Dwarf_Die* scope) {
  Dwarf_Attribute attribute;
  const char* name = nullptr;
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name})
    if (!name) name = dwarf_formstring(dwarf_attr_integrate(scope, kind, &attribute));
  return name ? plain_name(demangle(name)) : "";
}

// Out of what was inlined from somebody else's source (std::vector, at::Tensor ...) to the line that the author of the caller wrote, and to
// the innermost function that this line is of: it may have been inlined too.
void leave_inlined(Dwarf_Die* unit, std::vector<Dwarf_Die> scopes, ObjectSymbols::Place& place) {
  const std::string folder = folder_of(unit);
  const char* const compiled = dwarf_diename(unit);
  const std::string source = compiled ? plain_path(folder, compiled) : "";
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  if (dwarf_getsrcfiles(unit, &files, &file_count) != 0) file_count = 0;
  for (Dwarf_Die& scope : scopes) {
    if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine) break;
    if (!is_others_source(place.file, source)) {
      if (std::string function = inlined_function(&scope); !function.empty()) place.function = std::move(function);
      break;
    }
    const u64 file = number_of(&scope, DW_AT_call_file);
    const char* const name = file < file_count ? dwarf_filesrc(files, file, nullptr, nullptr) : nullptr;
    if (!name) break;
    place.file = plain_path(folder, name);
    place.line = static_cast<u32>(number_of(&scope, DW_AT_call_line));
  }
  place.others = is_others_source(place.file, source);
}

}  // namespace

struct ObjectSymbols::Parts {
  ElfImage image, debug;
  std::vector<FunctionSymbol> symbols;  // by their begin
  Scopes scopes;

  Dwarf* dwarf() const { return image.dwarf ? image.dwarf : debug.dwarf; }

  const FunctionSymbol* symbol_at(u64 address) const {
    auto at = std::upper_bound(symbols.begin(), symbols.end(), address,
                               [](u64 value, const FunctionSymbol& symbol) { return value < symbol.begin; });
    if (at == symbols.begin()) return nullptr;
    --at;
    return address - at->begin < std::max<u64>(at->size, 1) ? &*at : nullptr;
  }

  Dwarf_Die* unit_at(u64 address, Dwarf_Die& room) const {
    if (dwarf_addrdie(dwarf(), address, &room)) return &room;
    // No table of addresses (clang writes none): look at each unit.
    Dwarf_Off next = 0;
    std::size_t header = 0;
    for (Dwarf_Off at = 0; dwarf_nextcu(dwarf(), at, &next, &header, nullptr, nullptr, nullptr) == 0; at = next) {
      if (dwarf_offdie(dwarf(), at + header, &room) && dwarf_haspc(&room, address) > 0) return &room;
    }
    return nullptr;
  }
};

ObjectSymbols::ObjectSymbols(const std::string& path, const std::string& build_id) : parts_(std::make_unique<Parts>()) {
  elf_version(EV_CURRENT);
  Parts& parts = *parts_;
  if (!parts.image.open(path, build_id)) return;
  parts.image.dwarf = dwarf_begin_elf(parts.image.elf, DWARF_C_READ, nullptr);
  read_symbols(parts.image.elf, SHT_SYMTAB, parts.symbols);
  if (build_id.size() > 2 && (!parts.image.dwarf || parts.symbols.empty()) &&
      parts.debug.open("/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug",
                       build_id)) {
    parts.debug.dwarf = dwarf_begin_elf(parts.debug.elf, DWARF_C_READ, nullptr);
    if (parts.symbols.empty()) read_symbols(parts.debug.elf, SHT_SYMTAB, parts.symbols);
  }
  if (parts.symbols.empty()) read_symbols(parts.image.elf, SHT_DYNSYM, parts.symbols);
  std::stable_sort(parts.symbols.begin(), parts.symbols.end(), [](const FunctionSymbol& a, const FunctionSymbol& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.size < b.size;
  });
}

ObjectSymbols::~ObjectSymbols() = default;

bool ObjectSymbols::known() const { return parts_->image.elf != nullptr; }

ObjectSymbols::Place ObjectSymbols::at(u64 offset) const {
  Place place;
  if (const FunctionSymbol* symbol = parts_->symbol_at(offset)) place.function = plain_name(demangle(symbol->name));
  Dwarf_Die room;
  Dwarf_Die* unit = parts_->dwarf() ? parts_->unit_at(offset, room) : nullptr;
  Dwarf_Line* line = unit ? dwarf_getsrc_die(unit, offset) : nullptr;
  const char* file = line ? dwarf_linesrc(line, nullptr, nullptr) : nullptr;
  int number = 0;
  if (!file || dwarf_lineno(line, &number) != 0 || number <= 0) return place;
  place.file = plain_path(folder_of(unit), file);
  place.line = static_cast<u32>(number);
  leave_inlined(unit, parts_->scopes.at(unit, offset), place);
  return place;
}

}  // namespace gputrace
