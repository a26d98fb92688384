#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "analysis/render/render.h"
#include "analysis/table/choose.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

constexpr std::size_t kIndent = 2, kGap = 2, kNarrowestName = 14, kNarrowName = 30;

class TextRenderer {
 public:
  explicit TextRenderer(const TextStyle& style) : style_(style), mark_(style.utf8 ? "…" : "...") {}

  std::string render(const Report& report) {
    origin_ = report.origin;
    coverage(report.coverage);
    findings(report.findings);
    for (const Table& table : report.tables) {
      if (table.rows.empty() && style_.sections.empty()) continue;
      if (table.column("metric") >= 0) {
        metrics(table);
      } else {
        grid(table);
      }
    }
    return std::move(out_);
  }

 private:
  // Whether what belongs to this section is wanted, where all of its kind stands under `whole`.
  bool wanted(const std::string& section, std::initializer_list<const char*> whole) const {
    const auto asked = [this](const std::string& name) {
      return std::find(style_.sections.begin(), style_.sections.end(), name) != style_.sections.end();
    };
    return style_.sections.empty() || asked(section) || std::any_of(whole.begin(), whole.end(), asked);
  }

  std::string paint(const char* code, const std::string& text) const {
    return style_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

  void paragraph(const std::string& first, const std::string& text, std::size_t indent) {
    out_ += wrapped(first, text, indent, style_.width);
  }

  void coverage(const Coverage& coverage) {
    const std::string dropped = human_count(coverage.dropped) + " dropped";
    const std::string unknown = human_count(coverage.unknown_records) + " of unknown types";
    const bool incomplete = coverage.truncated || !coverage.missing.empty();
    const std::string whole = incomplete ? "incomplete" : "complete";
    out_ += paint("1", "Coverage") + "  ";
    out_ += fmt::format("{} process{}, {}, {}, {}, {}\n", coverage.processes, coverage.processes == 1 ? "" : "es",
                        counted(coverage.records, "record"), coverage.dropped ? paint("33;1", dropped) : dropped,
                        coverage.unknown_records ? paint("33;1", unknown) : unknown,
                        incomplete ? paint("33;1", whole) : whole);
    if (!coverage.missing.empty()) {
      std::string why;
      for (const std::string& clause : coverage.missing) why += (why.empty() ? "" : "; ") + clause;
      paragraph("          ", safe_text("incomplete: " + why), 12);
    }
    for (const std::string& remark : coverage.remarks) paragraph("          ", safe_text(remark), 10);
    std::map<std::string, std::string> by_reason;
    std::vector<std::string> order;
    for (const NotCollected& entry : coverage.not_collected) {
      if (!wanted(entry.what, {"overview", "quality"})) continue;
      std::string& what = by_reason[entry.why];
      if (what.empty()) order.push_back(entry.why);
      what += (what.empty() ? "" : ", ") + entry.what;
    }
    for (const std::string& why : order)
      paragraph("          ", safe_text("not collected: " + by_reason[why] + ": " + why), 12);
    out_ += "\n";
  }

  void findings(const std::vector<Finding>& all) {
    std::vector<Finding> findings;
    std::copy_if(all.begin(), all.end(), std::back_inserter(findings), [this](const Finding& finding) {
      return wanted(finding.section, {"overview", "findings"});
    });
    if (findings.empty()) return;
    out_ += paint("1", "Findings") + "\n";
    for (const Finding& finding : findings) {
      const char* code = finding.severity == Severity::Problem   ? "31;1"
                         : finding.severity == Severity::Warning ? "33;1"
                                                                 : "36";
      const std::string label = severity_name(finding.severity);
      const std::size_t before = out_.size();
      paragraph(fmt::format("  {:<8} ", label), safe_text(finding.text), 11);
      if (style_.color) out_.replace(before + 2, label.size(), paint(code, label));
      if (finding.gain_ns) {
        const std::string worth = human_nanos(static_cast<Nanos>(finding.gain_ns));
        paragraph(std::string(11, ' ') + "worth ", "up to " + worth + " of device time", 17);
      }
      if (!finding.site.empty()) paragraph(std::string(11, ' ') + "at ", safe_text(finding.site), 14);
      if (!finding.fix.empty()) paragraph(std::string(11, ' ') + "fix: ", safe_text(finding.fix), 16);
    }
    out_ += "\n";
  }

  // Rows of single numbers: those that are not known are named together, by reason.
  void metrics(const Table& table) {
    const auto metric = static_cast<std::size_t>(table.column("metric")),
               value = static_cast<std::size_t>(table.column("value"));
    const auto unit = static_cast<std::size_t>(table.column("unit")),
               note = static_cast<std::size_t>(table.column("note"));
    std::map<std::string, std::string> missing;
    std::size_t widest = 0, named = 14;  // columns of the numbers, of the names
    std::vector<std::array<std::string, 3>> lines;
    for (const Row& row : table.rows) {
      const std::string name = human(row[metric], Unit::Text);
      const std::string remark = is_null(row[note]) ? "" : human(row[note], Unit::Text);
      if (is_null(row[value])) {
        std::string& names = missing[remark];
        names += (names.empty() ? "" : ", ") + label(name);
        continue;
      }
      lines.push_back({label(name), human(row[value], unit_of(human(row[unit], Unit::Text))), remark});
      widest = std::max(widest, display_width(lines.back()[1]));
      named = std::max(named, display_width(lines.back()[0]));
    }
    title(table);
    for (const auto& [name, number, remark] : lines) {
      paragraph(fmt::format("  {:<{}}  {}{}{}", name, named, std::string(widest - display_width(number), ' '), number,
                            remark.empty() ? "" : "  "),
                remark, named + 6 + widest);
    }
    for (const auto& [why, names] : missing) paragraph("  ", fmt::format("not known: {} ({})", names, why), 4);
    out_ += "\n";
  }

  static Unit unit_of(const std::string& name) {
    for (const Unit known : {Unit::Nanos, Unit::Bytes, Unit::Count, Unit::Ratio, Unit::BytesPerSecond}) {
      if (name == unit_name(known)) return known;
    }
    return Unit::None;
  }

  // A column without a unit takes that of the row, where rows have one.
  static Column typed(const Table& table, const Row& row, std::size_t column) {
    const int unit = table.columns[column].unit == Unit::None ? table.column("unit") : -1;
    Column typed = table.columns[column];
    if (unit >= 0) typed.unit = unit_of(human(row[static_cast<std::size_t>(unit)], Unit::Text));
    return typed;
  }

  // A metric stands alone: "copy_bytes" is no "copy", "kernel_ns" no "kernel".
  static std::string label(const std::string& key) {
    const std::string words = heading_of(key);
    if (words.size() == key.size() || words.find(' ') != std::string::npos) return words;
    const std::string unit = key.substr(words.size());
    return words + (unit == "_ns" ? " time" : unit == "_bytes" ? " bytes" : "");
  }

  void title(const Table& table) {
    const std::size_t all = table.total_rows ? table.total_rows : table.rows.size();
    const std::size_t shown = shown_rows(table);
    out_ += paint("1", table.title);
    if (shown < all) out_ += fmt::format("  ({} of {})", human_count(shown), human_count(all));
    out_ += "\n";
  }

  std::size_t shown_rows(const Table& table) const {
    return style_.rows ? std::min(style_.rows, table.rows.size()) : table.rows.size();
  }

  struct Layout {
    std::vector<std::size_t> columns;  // that are shown
    std::vector<std::size_t> widths;
    std::vector<std::string> empty, narrow;  // not shown: no value at all; no room
  };

  // A unit that all cells of a column share stands in its heading, once: "total us", "share %".
  static std::vector<std::string> lift_units(const Table& table, std::vector<std::vector<std::string>>& cells) {
    std::vector<std::string> headings;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      headings.push_back(heading_of(table.columns, c) + (table.columns[c].approximate ? "~" : ""));
      const Unit unit = table.columns[c].unit;
      if (unit != Unit::Nanos && unit != Unit::Bytes && unit != Unit::Ratio && unit != Unit::BytesPerSecond) continue;
      std::string shared;
      bool same = true;
      for (std::size_t r = 0; r < cells.size(); ++r) {
        const auto& row = cells[r];
        const std::size_t at = row[c].rfind(' ');
        same = same && !std::holds_alternative<Parts>(table.rows[r][c]);  // several numbers, each with its own
        if (row[c] == "-") continue;
        const std::string own = at == std::string::npos ? "" : row[c].substr(at);
        same = same && !own.empty() && (shared.empty() || own == shared);
        shared = own;
      }
      if (!same || shared.empty()) continue;
      headings.back() += shared;
      for (auto& row : cells) {
        if (row[c] != "-") row[c].resize(row[c].size() - shared.size());
      }
    }
    return headings;
  }

  Layout lay_out(const Table& table, const std::vector<std::string>& headings,
                 const std::vector<std::vector<std::string>>& cells) {
    constexpr std::size_t kEndless = 1u << 20;
    const std::size_t room = style_.wide ? kEndless : style_.width;
    Layout layout;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].hint == Hint::Detail) continue;
      const bool any = table.rows.empty() || std::any_of(table.rows.begin(), table.rows.end(),
                                                         [c](const Row& row) { return !is_null(row[c]); });
      if (!any) {
        layout.empty.push_back(heading_of(table.columns, c));
        continue;
      }
      std::size_t width = display_width(headings[c]);
      for (const auto& row : cells) width = std::max(width, display_width(row[c]));
      layout.columns.push_back(c);
      layout.widths.push_back(width);
    }
    const auto total = [&] {
      std::size_t sum = kIndent;
      for (const std::size_t width : layout.widths) sum += width + kGap;
      return sum - kGap;
    };
    const auto shrink_names = [&](std::size_t least) {
      for (std::size_t i = 0; i < layout.columns.size(); ++i) {
        if (!takes_the_rest(table.columns[layout.columns[i]]) || total() <= room) continue;
        const std::size_t over = total() - room;
        std::size_t floor = std::min(layout.widths[i], least);
        if (table.columns[layout.columns[i]].hint ==
            Hint::Kernel) {  // without their parameters most names are shorter still
          std::size_t longest = display_width(headings[layout.columns[i]]);
          for (const auto& row : cells)
            longest = std::max(longest, display_width(shorten_signature(row[layout.columns[i]], floor, mark_)));
          floor = std::min(floor, longest);
        }
        layout.widths[i] = std::max(floor, layout.widths[i] - std::min(over, layout.widths[i]));
      }
    };
    shrink_names(kNarrowName);
    while (layout.columns.size() > 2 && total() > room) {  // columns go from the right, the ordering one and names stay
      std::size_t victim = layout.columns.size();
      for (std::size_t i = layout.columns.size(); i-- > 1;) {
        const Column& column = table.columns[layout.columns[i]];
        if (column.key == table.sort || takes_the_rest(column)) continue;
        victim = i;
        break;
      }
      if (victim == layout.columns.size()) break;
      layout.narrow.insert(layout.narrow.begin(), heading_of(table.columns, layout.columns[victim]));
      layout.columns.erase(layout.columns.begin() + static_cast<std::ptrdiff_t>(victim));
      layout.widths.erase(layout.widths.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    shrink_names(kNarrowestName);
    return layout;
  }

  // An instant needs all its digits; a duration does not.
  std::string cell_text(const Value& value, const Column& column) const {
    if (column.hint == Hint::Large && !is_null(value)) return human_large(value);
    if ((column.key != "at_ns" && column.key != "begin_ns") || !std::holds_alternative<i64>(value))
      return human(value, column.unit);
    return fmt::format("{:.6f} s", static_cast<double>(std::get<i64>(value) - origin_.value_or(0)) / 1e9);
  }

  static std::string indent_of(const Table& table, const Row& row) {
    const int level = table.column("level");
    const auto* steps = level < 0 ? nullptr : std::get_if<i64>(&row[static_cast<std::size_t>(level)]);
    return std::string(steps ? 2 * static_cast<std::size_t>(*steps) : 0, ' ');
  }

  void grid(const Table& table) {
    std::vector<std::vector<std::string>> cells;
    for (std::size_t r = 0; r < shown_rows(table); ++r) {
      auto& row = cells.emplace_back();
      for (std::size_t c = 0; c < table.columns.size(); ++c) {
        const std::string before = table.columns[c].hint == Hint::Tree ? indent_of(table, table.rows[r]) : "";
        row.push_back(before + cell_text(table.rows[r][c], typed(table, table.rows[r], c)));
      }
    }
    const std::vector<std::string> headings = lift_units(table, cells);
    const Layout layout = lay_out(table, headings, cells);
    same_form(table, layout, cells);
    tell_apart(table, layout, cells);
    title(table);
    if (table.rows.empty() || layout.columns.empty()) {
      out_ += "  none\n";
      for (std::size_t i = table.general_notes; i < table.notes.size(); ++i)
        paragraph("  ", safe_text(table.notes[i]), 4);
      out_ += "\n";
      return;
    }
    std::string head;
    for (std::size_t i = 0; i < layout.columns.size(); ++i) {
      const Column& column = table.columns[layout.columns[i]];
      cell(head, headings[layout.columns[i]], layout.widths[i], column, i + 1 == layout.columns.size());
    }
    out_ += std::string(kIndent, ' ') + paint("2", head) + "\n";
    for (const auto& row : cells) {
      std::string line(kIndent, ' ');
      for (std::size_t i = 0; i < layout.columns.size(); ++i) {
        const Column& column = table.columns[layout.columns[i]];
        const bool last = i + 1 == layout.columns.size();
        if (last && column.hint == Hint::Prose) break;
        cell(line, row[layout.columns[i]], layout.widths[i], column, last);
      }
      if (table.columns[layout.columns.back()].hint == Hint::Prose)
        paragraph(line, row[layout.columns.back()], display_width(line));
      else
        out_ += line + "\n";
    }
    for (const std::string& note : table.notes) {
      const std::string said = of_shown_columns(note, table, layout);
      if (!said.empty()) paragraph("  ", safe_text(said), 4);
    }
    if (!layout.empty.empty()) paragraph("  ", "not known here: " + list(layout.empty), 4);
    if (!layout.narrow.empty())
      paragraph("  ", "no room for: " + list(layout.narrow) + " (wider terminal, or --wide)", 4);
    out_ += "\n";
  }

  // Where one function of a column is too long for its parameters, all are shown without; but not when two would be
  // one.
  static void same_form(const Table& table, const Layout& layout, std::vector<std::vector<std::string>>& cells) {
    for (std::size_t i = 0; i < layout.columns.size(); ++i) {
      const std::size_t c = layout.columns[i];
      if (table.columns[c].hint != Hint::Kernel) continue;
      std::set<std::string> whole, brief;
      bool cut = false;
      for (const auto& row : cells) {
        cut = cut || display_width(row[c]) > layout.widths[i];
        whole.insert(row[c]);
        brief.insert(brief_signature(row[c]));
      }
      if (!cut || brief.size() < whole.size()) continue;
      for (auto& row : cells) row[c] = brief_signature(row[c]);
    }
  }

  // Two kernels never print the same name: of those whose shortened names agree, all but the first are numbered.
  void tell_apart(const Table& table, const Layout& layout, std::vector<std::vector<std::string>>& cells) const {
    const int whole = table.column("symbol") >= 0 ? table.column("symbol") : table.column("kernel");
    for (std::size_t i = 0; i < layout.columns.size() && whole >= 0; ++i) {
      const std::size_t c = layout.columns[i], width = layout.widths[i];
      const Column& column = table.columns[c];
      if (column.key != "name" && column.key != "kernel") continue;
      std::map<std::string, std::vector<std::string>> known;  // what is printed → whose it is
      for (std::size_t r = 0; r < cells.size(); ++r) {
        const Value& owner = table.rows[r][static_cast<std::size_t>(whole)];
        if (is_null(owner)) continue;
        auto& owners = known[fitted(cells[r][c], width, column)];
        const std::string& name = std::get<std::string>(owner);
        const auto at = static_cast<std::size_t>(std::find(owners.begin(), owners.end(), name) - owners.begin());
        if (at == owners.size()) owners.push_back(name);
        if (at == 0) continue;
        const std::string number = "#" + std::to_string(at + 1);
        cells[r][c] = fitted(cells[r][c], width - std::min(width, number.size()), column) + number;
      }
    }
  }

  // A note without its clauses on columns that are not shown.
  static std::string of_shown_columns(const std::string& note, const Table& table, const Layout& layout) {
    std::string said;
    for (std::size_t at = 0; at <= note.size();) {
      const std::size_t end = std::min(note.find("; ", at), note.size());
      const std::string clause = note.substr(at, end - at);
      at = end + 2;
      const std::string subject = clause.substr(0, clause.find(" = "));
      bool hidden = false;
      for (std::size_t c = 0; c < table.columns.size() && subject.size() < clause.size(); ++c) {
        const std::string& key = table.columns[c].key;
        if (subject != key && subject != heading_of(table.columns, c)) continue;
        hidden = std::find(layout.columns.begin(), layout.columns.end(), c) == layout.columns.end();
        break;
      }
      if (!hidden) said += (said.empty() ? "" : "; ") + clause;
    }
    return said;
  }

  static bool takes_the_rest(const Column& column) {
    return column.hint == Hint::Name || column.hint == Hint::Kernel || column.hint == Hint::Site ||
           column.hint == Hint::Tree || column.hint == Hint::Prose;
  }
  static bool is_text(const Column& column) { return column.unit == Unit::Text || column.unit == Unit::Boolean; }

  static std::string list(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  std::string fitted(const std::string& text, std::size_t width, const Column& column) const {
    if (column.hint == Hint::Kernel) return shorten_signature(text, width, mark_);
    return column.hint == Hint::Site ? shorten_site(text, width, mark_) : shorten(text, width, mark_);
  }

  void cell(std::string& line, const std::string& text, std::size_t width, const Column& column, bool last) {
    const bool left = is_text(column);
    const std::string shown = fitted(text, width, column);
    const std::string pad(width - std::min(width, display_width(shown)), ' ');
    line += left ? shown + (last ? "" : pad) : pad + shown;
    if (!last) line += std::string(kGap, ' ');
  }

  TextStyle style_;
  std::optional<Nanos> origin_;
  std::string mark_;
  std::string out_;
};

}  // namespace

std::string render_text(const Report& report, const TextStyle& style) { return TextRenderer(style).render(report); }

}  // namespace gputrace
