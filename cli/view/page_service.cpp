#include "cli/view/page_service.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/events/events.h"
#include "analysis/page/event_log.h"
#include "analysis/page/index_bytes.h"
#include "analysis/page/index_writer.h"
#include "analysis/page/kept_steps.h"
#include "analysis/page/packed.h"
#include "analysis/report.h"
#include "analysis/words/human.h"
#include "cli/options.h"
#include "cli/read/report_options.h"
#include "cli/version_generated.h"
#include "page/template.h"

namespace gputrace {
namespace {

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";

// ns from the run's origin, as the page counts.
std::optional<Nanos> instant(const HttpRequest& asked, const char* name) {
  const auto found = asked.query.find(name);
  if (found == asked.query.end() || found->second.empty() || found->second.size() > 18) return {};
  const std::string& text = found->second;
  if (text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) != std::string::npos || text == "-") return {};
  return std::strtoll(text.c_str(), nullptr, 10);
}

// What is kept beside the events.
struct Document {
  PageAround page;
  RunSteps steps;
};

std::string packed_document(const PageAround& page, const RunSteps& steps) {
  PackedColumn document;
  document.add_text(page.before);
  document.add_text(page.after);
  document.add_text(packed_steps(steps));
  return std::string(document.bytes());
}

std::optional<Document> document_in(const std::string& bytes) {
  ColumnReader in(bytes);
  Document document;
  document.page.before = in.text();
  document.page.after = in.text();
  auto steps = steps_in(in.text());
  if (!in.good() || !in.at_end() || !steps) return {};
  document.steps = std::move(*steps);
  return document;
}

}  // namespace

std::string PageService::load() {
  if (run_) return "";
  auto run = load_run(request_);
  if (!run) return run.error().message;
  run_ = std::move(run.value());
  steps_ = steps_of(*run_);
  return "";
}

PageAround PageService::around(const LoadedRun& run, std::string range) const {
  PageParts parts{page_template(), GPUTRACE_VERSION};
  parts.served = true;
  parts.range = std::move(range);
  return render_around(make_report(run, {}), parts);
}

std::string PageService::make_page(bool quiet) {
  if (home_ && find_index()) return "";
  Fd file = home_ ? home_->begin() : Fd();
  const bool begun = static_cast<bool>(file);
  if (std::string wrong = begun ? load_with(std::move(file)) : load(); !wrong.empty()) return wrong;
  for (const std::string& unread : run_->unread) warn(unread);
  const PageAround page = around(*run_, "");
  if (begun) keep_index(page, quiet);
  const auto block = events_of({});
  if (!block) return "the traces cannot be read any more";
  events_ = page_events(*block);
  page_ = page.before + events_ + page.after;
  if (index_) {
    run_.reset();
    ::malloc_trim(0);  // it is hours until so much is wanted again, if ever
  }
  return "";
}

bool PageService::find_index() {
  index_ = home_->find();
  if (!index_) return false;
  const auto bytes = index_->document();
  auto document = bytes ? document_in(*bytes) : std::nullopt;
  const auto picked = document ? index_->pick(most_) : std::nullopt;
  if (!picked) {
    index_.reset();
    home_->forget();
    return false;
  }
  events_ = page_events(pack_events(index_->tables(), *picked));
  page_ = document->page.before + events_ + document->page.after;
  steps_ = std::move(document->steps);
  return true;
}

std::string PageService::load_with(Fd file) {
  auto read = load_with_index(request_, std::move(file), home_->most_bytes());
  if (!read) return read.error().message;
  run_ = std::move(read.value().run);
  index_ = std::move(read.value().index);
  steps_ = steps_of(*run_);
  return "";
}

void PageService::keep_index(const PageAround& page, bool quiet) {
  std::string why = "it cannot be written, or would be larger than the traces";
  if (index_)
    why = run_->unread.empty() ? home_->keep(*index_, packed_document(page, *steps_))
                               : "not all of the traces could be read";
  if (!why.empty()) home_->forget();
  if (quiet) return;
  if (why.empty())
    say("kept an index of the events, for a quick start next time: " + home_->path() + " (" +
        human_bytes(index_->bytes()) + ")");
  else
    say("no index of the events is kept: " + why);
}

std::optional<EventBlock> PageService::events_of(std::optional<std::pair<Nanos, Nanos>> window) {
  if (index_) {
    if (const auto picked = index_->pick(most_, window)) return pack_events(index_->tables(), *picked);
    index_.reset();
    home_->forget();
  }
  if (!load().empty()) return {};
  EventLog log(*run_, most_, window);
  if (!export_events(request_, log)) return {};
  return pack_events(log.tables(), log.picked());
}

HttpAnswer PageService::answer(const HttpRequest& asked) {
  if (asked.path.empty() && asked.query.empty()) return {200, kHtml, page_};
  if (asked.path.empty()) return part(asked);
  if (asked.path == "events") return events(asked);
  if (asked.path == "here") return {200, kText, "\n", true};
  return {404, kText, "Not Found\n"};
}

HttpAnswer PageService::with_events(const PageAround& page) const {
  return {200, kHtml, page.before + events_ + page.after};
}

// ?steps=A-B or ?from=NS&to=NS: the traces are read once more, as `report --steps` and `report --from` do.
HttpAnswer PageService::part(const HttpRequest& asked) {
  LoadRequest request = request_;
  std::string range, key;
  if (const auto steps = asked.query.find("steps"); steps != asked.query.end()) {
    request.steps = parse_steps(steps->second);
    if (!request.steps) return {400, kText, "steps: A-B, A-, -B or A, numbers from 1\n"};
    range = key = "steps " + steps->second;
  } else {
    request.from = instant(asked, "from"), request.to = instant(asked, "to");
    if (!request.from || !request.to || *request.from >= *request.to)
      return {400, kText, "from and to: whole numbers, in ns\n"};
    request.from = std::max<Nanos>(0, *request.from);
    range = human_nanos(*request.from) + " to " + human_nanos(*request.to);
    key = std::to_string(*request.from) + " " + std::to_string(*request.to);
  }
  const auto known = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.key == key; });
  if (known != parts_.end()) {
    parts_.splice(parts_.begin(), parts_, known);
    return with_events(known->page);
  }
  const auto run = request.steps && steps_ ? load_steps(request, *steps_) : load_run(request);
  if (!run) return {400, kText, run.error().message + "\n"};
  parts_.push_front({key, around(run.value(), range)});
  if (parts_.size() > kMostParts) parts_.pop_back();
  return with_events(parts_.front().page);
}

HttpAnswer PageService::events(const HttpRequest& asked) {
  const auto from = instant(asked, "from"), to = instant(asked, "to");
  if (!from || !to || *from >= *to) return {400, kText, "from and to: whole numbers, in ns\n"};
  const auto block = events_of(std::pair(*from, *to));
  if (!block) return {500, kText, "the traces cannot be read any more\n"};
  // The description is JSON already.
  return {200, "application/json",
          "{\"events\":" + block->description + ",\"columns\":" + nlohmann::json(block->columns).dump() + "}"};
}

}  // namespace gputrace
