// What view's page may ask for: itself, the page of a part of the run, the events of a time.
//   · With an index of the events (index_home.h) a time costs the blocks that it touches; without, a reading of the traces. The answers
//     are the same.
//   · A part costs a reading of the traces: the steps of the whole are known. The parts that were asked for last cost nothing.
//   · What is damaged in the index is not answered: it is removed, and the traces are read.
#pragma once

#include <list>
#include <optional>
#include <string>

#include "analysis/load.h"
#include "analysis/page/page.h"
#include "cli/view/http_server.h"
#include "cli/view/index_home.h"

namespace gputrace {

class PageService {
 public:
  // `home`: where an index is kept; nullptr: there shall be none. It must outlive this. `most`: events in a page.
  PageService(LoadRequest request, std::size_t most, IndexHome* home)
      : request_(std::move(request)), most_(most), home_(home) {}

  // Empty, or why there is none. Says on stderr what could not be read and, unless `quiet`, what it keeps.
  std::string make_page(bool quiet);
  HttpAnswer answer(const HttpRequest& asked);

 private:
  bool find_index();
  std::string load();               // empty, or why it cannot
  std::string load_with(Fd index);  // the same, with an index of the events in that file, if it can be written
  void keep_index(const PageAround& page, bool quiet);
  // Nothing: the traces cannot be read.
  std::optional<EventBlock> events_of(std::optional<std::pair<Nanos, Nanos>> window);
  PageAround around(const LoadedRun& run, std::string range) const;
  HttpAnswer part(const HttpRequest& asked);
  HttpAnswer with_events(const PageAround& page) const;
  HttpAnswer events(const HttpRequest& asked);

  const LoadRequest request_;
  const std::size_t most_;
  IndexHome* const home_;
  std::optional<EventIndex> index_;
  std::optional<LoadedRun> run_;  // while it is needed
  std::optional<RunSteps> steps_;
  struct Part {
    std::string key;
    PageAround page;
  };
  static constexpr std::size_t kMostParts = 8;  // some 1 MiB each
  std::list<Part> parts_;                       // the newest first
  std::string events_, page_;
};

}  // namespace gputrace
