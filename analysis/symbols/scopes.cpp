#include "analysis/symbols/scopes.h"

#include <dwarf.h>

#include <algorithm>

namespace gputrace {
namespace {

// Files may be broken: of namespaces in namespaces, and of what is inlined in what is inlined.
constexpr int kMostScopes = 64;

// The child of `scope` that holds the instruction, in `child`; false: none does.
bool find_inner(Dwarf_Die* scope, u64 address, Dwarf_Die& child) {
  if (dwarf_child(scope, &child) != 0) return false;
  do {
    const int tag = dwarf_tag(&child);
    if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && dwarf_haspc(&child, address) > 0)
      return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

}  // namespace

void Scopes::find_functions(Dwarf_Die* of, int depth, std::vector<Function>& found) {
  Dwarf_Die child{};
  if (depth > kMostScopes || dwarf_child(of, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram: {
        Dwarf_Addr base = 0, begin = 0, end = 0;
        for (ptrdiff_t at = 0; (at = dwarf_ranges(&child, at, &base, &begin, &end)) > 0;)
          if (begin < end) found.push_back({begin, end, dwarf_dieoffset(&child)});
        find_functions(&child, depth + 1, found);  // a lambda's stands in its class, within the function that has it
        break;
      }
      case DW_TAG_lexical_block:
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
      case DW_TAG_enumeration_type:
        find_functions(&child, depth + 1, found);
        break;
      default:
        break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

std::vector<Dwarf_Die> Scopes::at(Dwarf_Die* unit, u64 address) {
  const auto [known, fresh] = units_.try_emplace(dwarf_dieoffset(unit));
  std::vector<Function>& functions = known->second;
  if (fresh) {
    find_functions(unit, 0, functions);
    std::sort(functions.begin(), functions.end(),
              [](const Function& a, const Function& b) { return a.begin < b.begin; });
  }
  std::vector<Dwarf_Die> scopes;
  const auto after = std::upper_bound(functions.begin(), functions.end(), address,
                                      [](u64 value, const Function& function) { return value < function.begin; });
  if (after == functions.begin() || address >= (after - 1)->end) return scopes;
  Dwarf_Die scope{}, inner{};
  if (!dwarf_offdie(dwarf_cu_getdwarf(unit->cu), (after - 1)->entry, &scope)) return scopes;
  scopes.push_back(scope);
  for (int depth = 0; depth < kMostScopes && find_inner(&scope, address, inner); ++depth) {
    scope = inner;
    if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine) scopes.push_back(scope);
  }
  std::reverse(scopes.begin(), scopes.end());
  return scopes;
}

}  // namespace gputrace
