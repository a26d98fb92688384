// Where view keeps the index of a run's events (analysis/page/event_index.h) between two starts, and of what it is.
//
//   · One file: beside the traces, where they lie in one directory that is ours and that nobody else may write to; else in
//     $XDG_CACHE_HOME/gputrace (or ~/.cache/gputrace); where neither takes it, one without a name, for as long as the program runs.
//   · It is of the very files (path, size, times), of this program, of this request: anything else, and it is made anew.
//   · Files are ours alone (0600), never reached through a link as last part of their path, and get their name when they are whole.
//   · Not thread-safe. Failures are no errors: view is slower then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/page/event_index.h"
#include "analysis/page/index_writer.h"
#include "base/fd.h"

namespace gputrace {

class IndexHome {
 public:
  // `request`: what of the files is asked for, besides them. Before they are read.
  IndexHome(std::vector<std::string> files, std::string request);
  ~IndexHome();
  IndexHome(const IndexHome&) = delete;
  IndexHome& operator=(const IndexHome&) = delete;

  u64 trace_bytes() const { return trace_bytes_; }
  u64 most_bytes() const { return most_bytes_of_index(trace_bytes_); }

  // One that was kept and is of these files.
  std::optional<EventIndex> find();
  // An empty file for a new one; nothing: there is no place.
  Fd begin();
  // Keeps what was written there, with a text. Empty, or why not.
  std::string keep(EventIndex& index, const std::string& document);
  // Removes what was found, begun or kept: it is no good.
  void forget();
  const std::string& path() const { return path_; }  // of what was found, begun or kept; empty: it has none

 private:
  std::string key() const;  // empty: not all of the files are there
  // Its path in either place; empty: that is none.
  std::string beside() const;
  std::string cached(bool make) const;  // `make`: the directory too, where there is none yet
  Fd begin_at(const std::string& path);

  const std::vector<std::string> files_;
  const std::string request_;
  const std::string key_;
  const u64 trace_bytes_;
  std::string path_;
  std::string begun_;  // the name of a file that has not got its own yet
  Fd lock_;            // of it
};

}  // namespace gputrace
