#include "analysis/run/sites.h"

#include <algorithm>

namespace gputrace {
namespace {

std::string last_part(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? file : file.substr(slash + 1);
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// "/usr/lib/python3.11/threading.py": a digit follows, so that a project called python3-tools is no library.
bool in_standard_library(const std::string& file) {
  static const std::string kPlace = "/lib/python3.";
  const std::size_t at = file.find(kPlace);
  return at != std::string::npos && at + kPlace.size() < file.size() && file[at + kPlace.size()] >= '0' &&
         file[at + kPlace.size()] <= '9';
}

void add(SiteSum& sum, const SourceLines& lines, u32 origin) {
  if (origin < lines.totals.size()) {
    const StackTotals& more = lines.totals[origin];
    sum.totals.calls += more.calls;
    sum.totals.launches += more.launches;
    sum.totals.wait_ns += more.wait_ns;
    sum.totals.copy_bytes += more.copy_bytes;
    sum.totals.allocated_bytes += more.allocated_bytes;
  }
  if (origin < lines.times.size()) {
    sum.times.device_ns += lines.times[origin].device_ns;
    sum.times.idle_ns += lines.times[origin].idle_ns;
  }
}

bool is_empty(const SiteSum& sum) {
  return sum.totals.calls == 0 && sum.times.device_ns == 0 && sum.times.idle_ns == 0;
}

}  // namespace

bool is_library_file(const std::string& file) {
  return contains(file, "/site-packages/") || contains(file, "/dist-packages/") || in_standard_library(file) ||
         file.rfind("<frozen ", 0) == 0;
}

u32 own_frame(const SourceLines& lines, u32 stack) {
  for (u32 frame = stack; frame != 0 && frame < lines.frames.size(); frame = lines.frames[frame].parent) {
    if (!is_library_file(lines.frames[frame].file)) return frame;
  }
  return stack < lines.frames.size() ? stack : 0;
}

FileNames::FileNames(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) add(process);
}

void FileNames::add(const ProcessTrace& process) {
  for (const SourceFrame& frame : process.lines.frames) files_[last_part(frame.file)].insert(frame.file);
}

std::string FileNames::of(const std::string& file) const {
  const std::string name = last_part(file);
  const auto known = files_.find(name);
  return known != files_.end() && known->second.size() > 1 ? file : name;
}

std::string site_name(const SourceLines& lines, u32 frame, const FileNames& names) {
  if (frame == 0 || frame >= lines.frames.size()) return "";
  const SourceFrame& is = lines.frames[frame];
  std::string file = names.of(is.file);
  if (is.line != 0) file += ":" + std::to_string(is.line);
  return file + " " + is.function;
}

std::string site_of_origin(const SourceLines& lines, u32 origin, const FileNames& names) {
  return origin < lines.origins.size() ? site_name(lines, own_frame(lines, lines.origins[origin].frame), names) : "";
}

std::vector<SiteSum> sites_of(const LoadedRun& run) {
  const FileNames names(run);
  std::map<std::string, SiteSum> sums;
  for (const ProcessTrace& process : run.processes) {
    const SourceLines& lines = process.lines;
    for (u32 number = 0; number < lines.origins.size(); ++number) {
      add(sums[site_of_origin(lines, number, names)], lines, number);
    }
  }
  std::vector<SiteSum> sites;
  for (auto& [site, sum] : sums) {
    if (is_empty(sum)) continue;
    sum.site = site;
    sites.push_back(std::move(sum));
  }
  return sites;
}

}  // namespace gputrace
