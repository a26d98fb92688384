// Prints the part of docs/REFERENCE.md that reports and findings say of themselves: from `## Sections` to `## JSON`. A rule test
// holds the document against this output, and writes it with GT_UPDATE=1.
#include <cstdio>
#include <string>

#include "analysis/findings/rules.h"
#include "analysis/reports/list.h"

using namespace gputrace;

namespace {

// A cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '|' ? std::string("\\|") : std::string(1, c);
  return safe;
}

std::string parts_of(Needs needs) {
  std::string parts;
  for (const Need need : needs) parts += (parts.empty() ? "`" : " `") + std::string(part_of(need)) + "`";
  return parts;
}

const char* shown_words(Shown shown) {
  switch (shown) {
    case Shown::Always:
      return "always";
    case Shown::Filled:
      return "if it has rows";
    case Shown::OnDemand:
      return "with `--section`";
  }
  return "";
}

std::string columns_of(const SectionReport& report, bool promised) {
  std::string columns;
  for (const SectionColumn& column : report.columns) {
    if (column.promised != promised) continue;
    columns += (columns.empty() ? "`" : ", `") + std::string(column.key) + "` " + unit_name(column.unit);
  }
  return columns;
}

void print_sections() {
  std::printf(
      "## Sections\n\n"
      "Printed, to the end of the findings, from what reports and rules (`analysis/reports/`, `analysis/findings/`) "
      "say of themselves. "
      "*needs*: parts of\n"
      "`GPUTRACE_COLLECT`; where one is not in the trace, the section is absent and named in `not_collected` with the "
      "reason.\n\n"
      "| section | rows | needs | shown |\n|---|---|---|---|\n");
  for (const SectionReport* report : all_reports()) {
    std::printf("| `%s` | %s | %s | %s |\n", report->section, cell(report->answers).c_str(),
                parts_of(report->needs).c_str(), shown_words(report->shown));
  }
}

void print_columns() {
  std::printf(
      "\n### Columns, with their units\n\n"
      "`none`: a number without a unit. Columns after *also* may change; the others keep their names and units.\n\n"
      "| section | columns | meaning |\n|---|---|---|\n");
  for (const SectionReport* report : all_reports()) {
    std::string columns = columns_of(*report, true), notes;
    if (const std::string more = columns_of(*report, false); !more.empty()) columns += "; *also* " + more;
    for (const char* note : report->notes) notes += (notes.empty() ? "" : "; ") + std::string(note);
    std::printf("| `%s` | %s | %s |\n", report->section, columns.c_str(), cell(notes).c_str());
  }
}

void print_findings() {
  std::printf(
      "\n## Findings\n\n"
      "Each with its evidence, the section to look at and, where there is one, the fix. Where a part that one needs is "
      "not in the trace, nothing is said.\n\n"
      "| finding | says | needs |\n|---|---|---|\n");
  for (const FindingRule* rule : all_rules()) {
    for (const FindingKind& kind : rule->findings)
      std::printf("| `%s` | %s | %s |\n", kind.id, cell(kind.says).c_str(), parts_of(rule->needs).c_str());
  }
}

}  // namespace

int main() {
  print_sections();
  print_columns();
  print_findings();
  std::printf("\n");
}
