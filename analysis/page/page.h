// A report as a page of HTML: one file that needs no other and asks nobody for anything. Pure: the result is a string.
//
//   page/ (built once, a template) ──┐
//   report ──▶ JSON, inert ──────────┼──▶ one document
//          └─▶ plain tables ─────────┘    (what stands where no script runs)
//
//   · Names are hostile: they come into the document as text of an element or in a JSON block without any '<', never as markup.
//   · What the template allows itself (its policy) is the template's; nothing here adds script or style.
#pragma once

#include <string>
#include <string_view>

#include "analysis/page/event_block.h"
#include "analysis/table/table.h"

namespace gputrace {

struct PageParts {
  std::string_view page;               // the template
  std::string_view version;            // of gputrace
  const EventBlock* events = nullptr;  // for the timeline; nullptr: the page has none
  bool served = false;                 // it may ask who serves it for more, and nobody else
  std::string range = {};              // of which part of the run the report is, in words; empty: all of it
};

std::string render_page(const Report& report, const PageParts& parts);

// The same in two pieces, between which page_events() belongs: a report takes long, and which events stand beside it changes.
struct PageAround {
  std::string before, after;
};
PageAround render_around(const Report& report, const PageParts& parts);  // parts.events is not asked for
std::string page_events(const EventBlock& events);

// The tables as HTML, the first `rows` of each, with a word on what is left out.
std::string plain_tables(const Report& report, std::size_t rows);
// Text as the content of an element or of an attribute in double quotes.
std::string as_html(std::string_view text);

}  // namespace gputrace
