#include "analysis/page/page.h"

#include <array>
#include <nlohmann/json.hpp>

#include "analysis/render/render.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPlainRows = 100;

const char* hint_name(Hint hint) {
  switch (hint) {
    case Hint::Name:
    case Hint::Site:
      return "name";
    case Hint::Kernel:
      return "kernel";
    case Hint::Prose:
      return "prose";
    case Hint::Tree:
      return "tree";
    case Hint::Detail:
      return "detail";
    case Hint::Handle:
      return "handle";
    case Hint::Large:
      return "large";
    case Hint::Normal:
      break;
  }
  return nullptr;
}

// What the JSON for programs does not say and a page needs.
std::string page_info(const Report& report, const PageParts& parts) {
  Json hints = Json::object(), sort = Json::object();
  for (const Table& table : report.tables) {
    Json of_table = Json::object();
    for (const Column& column : table.columns) {
      if (const char* name = hint_name(column.hint)) of_table[column.key] = name;
    }
    if (!of_table.empty()) hints[table.section] = std::move(of_table);
    if (!table.sort.empty()) sort[table.section] = table.sort;
  }
  Json info = {{"version", parts.version},
               {"origin_ns", report.origin ? Json(*report.origin) : Json(nullptr)},
               {"hints", hints},
               {"sort", sort}};
  if (parts.served) info["served"] = true;
  if (!parts.range.empty()) info["range"] = parts.range;
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A block that no browser runs. Without a '<' nothing in it can end it, nor begin a comment.
std::string inert(const char* id, const std::string& json) {
  std::string block = std::string("<script type=\"application/json\" id=\"") + id + "\">";
  block.reserve(block.size() + json.size() + 16);
  for (const char one : json) {
    if (one == '<')
      block += "\\u003c";
    else
      block += one;
  }
  return block + "</script>\n";
}

std::string data_of(const Report& report, const PageParts& parts) {
  return inert("gputrace-report", render_json(report, -1)) + inert("gputrace-page", page_info(report, parts));
}

std::string title_of(const Report& report) {
  const Table* run = report.table("run");
  const int at = run ? run->column("program") : -1;
  if (at < 0 || run->rows.empty()) return "gputrace";
  const auto* program = std::get_if<std::string>(&run->rows.front()[static_cast<std::size_t>(at)]);
  return program ? *program + " · gputrace" : "gputrace";
}

}  // namespace

std::string as_html(std::string_view text) {
  std::string escaped;
  for (const char one : safe_text(text)) {
    switch (one) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += one;
    }
  }
  return escaped;
}

std::string page_events(const EventBlock& events) {
  return inert("gputrace-events", events.description) + inert("gputrace-columns", events.columns);
}

std::string render_page(const Report& report, const PageParts& parts) {
  const PageAround page = render_around(report, parts);
  return parts.events ? page.before + page_events(*parts.events) + page.after : page.before + page.after;
}

// The places are looked for in the template alone, so that a name which is called like one stays a name.
PageAround render_around(const Report& report, const PageParts& parts) {
  const std::array<std::pair<std::string_view, std::string>, 3> places = {{
      {"gputrace:title", as_html(title_of(report))},
      {"gputrace:tables", plain_tables(report, kPlainRows)},
      {"gputrace:data", data_of(report, parts)},
  }};
  std::string document;
  std::string_view rest = parts.page;
  constexpr std::string_view kNothing = "default-src 'none'";
  if (const std::size_t at = rest.find(kNothing); parts.served && at != std::string_view::npos) {
    document.append(rest.substr(0, at + kNothing.size())).append("; connect-src 'self'");
    rest.remove_prefix(at + kNothing.size());
  }
  for (const auto& [place, text] : places) {
    const std::size_t at = rest.find(place);
    if (at == std::string_view::npos) continue;
    document += rest.substr(0, at);
    document += text;
    rest.remove_prefix(at + place.size());
  }
  return {std::move(document), std::string(rest)};
}

}  // namespace gputrace
