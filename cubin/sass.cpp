// From an image to its kernels' facts: which sections a kernel's calls reach, and their scans added up.
#include <algorithm>

#include "cubin/elf_tables.h"
#include "cubin/sass_code.h"

namespace gputrace {
namespace {

constexpr std::uint32_t kUnknownCallee = UINT32_MAX;
constexpr std::size_t kExtraScanBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxCallSteps = std::size_t{1} << 22;  // over all kernels of a cubin

// Functions of the driver that device code calls by name: they hold nothing that is looked for here.
bool is_system_function(std::string_view name) {
  static constexpr std::string_view kNames[] = {"vprintf", "malloc", "free", "__assertfail"};
  if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
  return name.substr(0, 3) == "cnp" || name.substr(0, 4) == "cuda" || name.substr(0, 8) == "__cuda_s";
}

// Who calls whom, section by section: from the relocations of the code, and from .nv.callgraph, which holds pairs of
// symbol indexes (caller, callee) and, between them, a marker (0, -1) before direct calls, (0, -2) before functions
// whose address is taken, (0, -3) before callers through pointers, (0, -4) before the rest.
class CallGraph {
 public:
  explicit CallGraph(const ElfTables& elf) : elf_(elf), calls_(elf.sections.size()), marks_(elf.sections.size()) {
    for (const ElfSection& section : elf_.sections) {
      if (section.name == ".nv.callgraph") read_call_graph(section.bytes);
      if (section.type == kElfRelaSection) read_relocations(section, 24);
      if (section.type == kElfRelSection) read_relocations(section, 16);
    }
    for (std::vector<std::uint32_t>& calls : calls_) {
      std::sort(calls.begin(), calls.end());
      calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    }
  }

  bool has_graph() const { return has_graph_; }

  // Sections that code in `root` reaches, itself first. False if some calls cannot be followed.
  bool reached(std::uint32_t root, std::vector<std::uint32_t>& sections) {
    bool complete = true;
    ++round_;
    sections.assign(1, root);
    marks_[root] = round_;
    for (std::size_t i = 0; i < sections.size(); ++i) {
      for (const std::uint32_t callee : calls_[sections[i]]) {
        if (++steps_ > kMaxCallSteps) return false;
        if (callee == kUnknownCallee) {
          complete = false;
        } else if (marks_[callee] != round_) {
          marks_[callee] = round_;
          sections.push_back(callee);
        }
      }
    }
    return complete;
  }

 private:
  const ElfSymbol* function(std::uint32_t index) const {
    if (index >= elf_.symbols.size() || elf_.symbols[index].type != kElfSymbolFunction) return nullptr;
    return &elf_.symbols[index];
  }

  void add(std::uint32_t from, const ElfSymbol& callee) {
    if (from == 0 || from >= calls_.size()) return;
    if (callee.section != 0 && callee.section < calls_.size()) {
      if (callee.section != from) calls_[from].push_back(callee.section);
    } else if (!is_system_function(callee.name)) {
      calls_[from].push_back(kUnknownCallee);
    }
  }

  void read_relocations(const ElfSection& section, std::size_t entry_bytes) {
    const std::uint32_t target = section.info;
    if (target >= elf_.sections.size() || elf_.sections[target].name.substr(0, 5) != ".text") return;
    for (std::size_t at = 0; at + entry_bytes <= section.bytes.size(); at += entry_bytes) {
      if (const ElfSymbol* callee = function(*read_at<std::uint32_t>(section.bytes, at + 12))) add(target, *callee);
    }
  }

  void read_call_graph(ByteSpan bytes) {
    has_graph_ = true;
    std::int32_t part = 0;
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      const auto caller = *read_at<std::uint32_t>(bytes, at);
      const auto callee = *read_at<std::int32_t>(bytes, at + 4);
      if (caller == 0 && callee < 0) {
        part = callee;
        continue;
      }
      const ElfSymbol* from = function(caller);
      if (from == nullptr || from->section >= calls_.size()) continue;
      if (part == -3) calls_[from->section].push_back(kUnknownCallee);
      if (part != -1) continue;
      if (const ElfSymbol* to = function(static_cast<std::uint32_t>(callee))) add(from->section, *to);
    }
  }

  const ElfTables& elf_;
  std::vector<std::vector<std::uint32_t>> calls_;  // by section
  std::vector<std::uint32_t> marks_;
  std::uint32_t round_ = 0;
  std::size_t steps_ = 0;
  bool has_graph_ = false;
};

using Found = std::function<void(const KernelScan&)>;

KernelScan described(const CodeModule& module, const ImageKernel& kernel, SmVariant variant) {
  KernelScan scan;
  scan.symbol = kernel.symbol;
  scan.architecture = module.sm.number;
  if (variant == SmVariant::kArchitecture) scan.flags |= kCodeArchitectureVariant;
  if (variant == SmVariant::kFamily) scan.flags |= kCodeFamilyVariant;
  if (kernel.max_threads != 0) scan.max_threads = kernel.max_threads;
  return scan;
}

void set_facts(KernelScan& scan, const CodeFacts& facts) {
  scan.mma = facts.mma;
  scan.precision = facts.precision;
  scan.flags |= facts.flags;
  scan.instructions = facts.instructions;
  scan.mma_instructions = facts.mma_instructions;
  scan.fp64 = facts.fp64;
  scan.fp32 = facts.fp32;
  scan.fp16 = facts.fp16;
  scan.bf16 = facts.bf16;
}

bool scan_cubin(ByteSpan bytes, SmVariant variant, const Found& found, ScanTotals& totals, std::string* why) {
  const auto module = read_cubin(bytes, why);
  if (!module) return false;
  const auto elf = read_elf_tables(bytes, why);
  if (!elf) return false;
  if (variant == SmVariant::kNone) variant = module->sm.variant;
  CallGraph graph(*elf);
  std::vector<std::optional<CodeFacts>> sections(elf->sections.size());
  std::vector<std::uint32_t> reached;
  std::size_t budget = bytes.size() + kExtraScanBytes;  // hostile sections may overlap
  std::size_t next = 0;                                 // read_cubin gives kernels in the order of the symbol table
  for (const ElfSymbol& symbol : elf->symbols) {
    if (symbol.type != kElfSymbolFunction || (symbol.other & kElfOtherEntry) == 0) continue;
    if (next >= module->kernels.size()) break;
    const ImageKernel& kernel = module->kernels[next++];
    KernelScan scan = described(*module, kernel, variant);
    scan.registers = kernel.registers;
    scan.local_bytes = kernel.local_bytes;
    scan.static_shared_bytes = kernel.static_shared_bytes;
    CodeFacts facts;
    bool complete = graph.reached(symbol.section, reached);
    for (const std::uint32_t section : reached) {
      if (!sections[section]) {
        const std::size_t size = elf->sections[section].bytes.size();
        if (size > budget) {
          complete = false;
          continue;
        }
        budget -= size;
        sections[section] = scan_code(elf->sections[section].bytes, module->sm.number);
        totals.code_bytes += size;
      }
      facts.add(*sections[section]);
    }
    complete = complete && (!facts.calls_absolute || graph.has_graph());
    set_facts(scan, facts);
    if (module->sm.number >= kFirstScannedArchitecture) scan.flags |= kCodeScanned;
    if (!complete) scan.flags |= kCodeIncomplete;
    found(scan);
  }
  totals.kernels += module->kernels.size();
  return true;
}

bool scan_ptx_image(ByteSpan bytes, const Found& found, ScanTotals& totals, std::string* why) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto module = read_ptx(text, why);
  if (!module) return false;
  std::unordered_map<std::string_view, const PtxMmaFacts*> by_name;
  const std::vector<PtxMmaFacts> scans = scan_ptx(text);
  for (const PtxMmaFacts& scan : scans) by_name.emplace(scan.kernel, &scan);
  for (const ImageKernel& kernel : module->kernels) {
    KernelScan scan = described(*module, kernel, module->sm.variant);
    scan.flags |= kCodePtxOnly;
    if (const auto facts = by_name.find(kernel.symbol); facts != by_name.end()) {
      set_facts(scan, facts->second->facts);
      if (facts->second->incomplete) scan.flags |= kCodeIncomplete;
    } else {
      scan.flags |= kCodeIncomplete;
    }
    found(scan);
  }
  totals.kernels += module->kernels.size();
  return true;
}

void scan_image(ContainerKind kind, ByteSpan bytes, SmVariant variant, const Found& found, ScanTotals& totals) {
  std::string why;
  const bool read = kind == ContainerKind::kCubin ? scan_cubin(bytes, variant, found, totals, &why)
                                                  : scan_ptx_image(bytes, found, totals, &why);
  ++totals.images;
  if (read) return;
  if (totals.failures++ == 0) totals.first_failure = why;
}

// What a driver would load for these devices; all that is code where no device is named.
std::vector<const FatbinEntry*> entries_for(const std::vector<FatbinEntry>& entries,
                                            std::span<const std::uint32_t> devices) {
  std::vector<const FatbinEntry*> chosen;
  if (devices.empty()) {
    for (const FatbinEntry& entry : entries) {
      if (entry.kind != ContainerKind::kUnknown) chosen.push_back(&entry);
    }
    return chosen;
  }
  // A section of fatbins one after the other holds one entry per object file: all of the best rank are wanted.
  for (const std::uint32_t device : devices) {
    const FatbinEntry* best = pick_entry(entries, device);
    if (best == nullptr) continue;
    for (const FatbinEntry& entry : entries) {
      const bool same = entry.kind == best->kind && entry.sm == best->sm;
      if (same && std::find(chosen.begin(), chosen.end(), &entry) == chosen.end()) chosen.push_back(&entry);
    }
  }
  return chosen;
}

void scan_fatbin(ByteSpan bytes, std::span<const std::uint32_t> devices, const Found& found, ScanTotals& totals) {
  std::string why;
  const auto entries = read_fatbin(bytes, &why);
  if (!entries || !why.empty()) {
    if (totals.failures++ == 0) totals.first_failure = why;
    if (!entries) return;
  }
  for (const FatbinEntry* entry : entries_for(*entries, devices)) {
    const auto raw = unpack(*entry, &why);
    if (raw) {
      scan_image(entry->kind, *raw, entry->sm.variant, found, totals);
    } else if (totals.failures++ == 0) {
      totals.first_failure = why;
    }
  }
}

}  // namespace

bool for_each_kernel_code(std::span<const std::byte> image, std::span<const std::uint32_t> devices, const Found& found,
                          ScanTotals* totals) {
  ScanTotals own;
  ScanTotals& sum = totals != nullptr ? *totals : own;
  const std::size_t before = sum.images;
  const std::size_t failed = sum.failures;
  const ContainerKind kind = identify_image(image);
  switch (kind) {
    case ContainerKind::kFatbin:
      scan_fatbin(image, devices, found, sum);
      break;
    case ContainerKind::kCubin:
    case ContainerKind::kPtx:
      scan_image(kind, image, SmVariant::kNone, found, sum);
      break;
    case ContainerKind::kFatbinWrapper:
    case ContainerKind::kUnknown:
      if (sum.failures++ == 0) sum.first_failure = "neither fatbin, cubin nor PTX";
      return false;
  }
  return sum.images - before > sum.failures - failed;
}

}  // namespace gputrace
