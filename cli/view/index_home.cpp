#include "cli/view/index_home.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "analysis/page/index_bytes.h"
#include "base/trusted_directory.h"
#include "cli/environment.h"
#include "cli/places.h"
#include "cli/version_generated.h"
#include "page/template.h"

namespace gputrace {
namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string times_of(const struct stat& status) {
  return fmt::format("{} bytes, {}.{:09} {}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                     status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

bool is_ours(const std::string& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         distrust_directory(folder) == Distrust::None;
}

bool is_ours(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         status.st_nlink == 1 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Empty: there is none. `make`: then there shall be one.
std::string cache_folder(bool make) {
  std::string base = variable("XDG_CACHE_HOME");
  if (base.empty() || base[0] != '/') {
    base = variable("HOME");
    if (base.empty() || base[0] != '/') return "";
    base += "/.cache";
  }
  if (make) ::mkdir(base.c_str(), 0700);
  base += "/gputrace";
  if (make) ::mkdir(base.c_str(), 0700);
  const std::string real = real_path(base);
  return !real.empty() && is_ours(real) ? real : "";
}

std::string name_for(const std::string& what) { return fmt::format("view-{:016x}.index", checksum_of(what)); }

// A new file, locked as long as it is open; one whose maker has gone is taken away before.
Fd new_file(const std::string& path) {
  for (int round = 0; round < 2; ++round) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file) return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(file) : Fd();
    if (errno != EEXIST) return Fd();
    const Fd left(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!left || !is_ours(left.get()) || ::flock(left.get(), LOCK_EX | LOCK_NB) != 0) return Fd();
    ::unlink(path.c_str());
  }
  return Fd();
}

bool same_file(int file, const std::string& path) {
  struct stat open {
  }, there{};
  return ::fstat(file, &open) == 0 && ::lstat(path.c_str(), &there) == 0 && open.st_ino == there.st_ino &&
         open.st_dev == there.st_dev;
}

}  // namespace

IndexHome::IndexHome(std::vector<std::string> files, std::string request)
    : files_(std::move(files)), request_(std::move(request)), key_(key()), trace_bytes_(bytes_of(files_)) {}

IndexHome::~IndexHome() {
  if (!begun_.empty() && same_file(lock_.get(), begun_)) ::unlink(begun_.c_str());
}

std::string IndexHome::key() const {
  struct stat status {};
  std::string text = fmt::format("gputrace {} {:016x}", GPUTRACE_VERSION, checksum_of(std::string(page_template())));
  // Two builds may have one version.
  if (::stat("/proc/self/exe", &status) == 0) text += ", " + times_of(status);
  text += "\n" + request_ + "\n";
  for (const std::string& file : files_) {
    if (::stat(file.c_str(), &status) != 0) return "";
    const std::string real = real_path(file);
    text += real + "\n" + times_of(status);
    // The report has a word on whose directory it is.
    text += ::stat(parent_of(real).c_str(), &status) == 0 ? fmt::format(", {}\n", status.st_uid) : "\n";
  }
  return text;
}

// By their names alone beside them: a directory that is moved finds its index, and replaces it.
std::string IndexHome::beside() const {
  std::string names, folder;
  for (const std::string& file : files_) {
    const std::string real = real_path(file);
    if (!folder.empty() && parent_of(real) != folder) return "";
    folder = parent_of(real);
    names += real.substr(real.rfind('/') + 1) + "\n";
  }
  return is_ours(folder) ? folder + "/" + name_for(names + request_) : "";
}

std::string IndexHome::cached(bool make) const {
  const std::string folder = cache_folder(make);
  if (folder.empty()) return "";
  std::string paths;
  for (const std::string& file : files_) paths += real_path(file) + "\n";
  return folder + "/" + name_for(paths + request_);
}

std::optional<EventIndex> IndexHome::find() {
  if (key_.empty()) return {};
  for (const std::string& path : {beside(), cached(false)}) {
    Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file || !is_ours(file.get())) continue;
    if (auto index = EventIndex::open(std::move(file), key_)) {
      path_ = path;
      return index;
    }
  }
  return {};
}

Fd IndexHome::begin_at(const std::string& path) {
  if (path.empty() || !has_space(parent_of(path), most_bytes())) return Fd();
  const std::string name = path + ".new";
  Fd file = new_file(name);
  if (!file) return Fd();
  path_ = path, begun_ = name;
  lock_.reset(::fcntl(file.get(), F_DUPFD_CLOEXEC, 3));
  return file;
}

Fd IndexHome::begin() {
  if (key_.empty()) return Fd();
  if (Fd file = begin_at(beside())) return file;
  if (Fd file = begin_at(cached(true))) return file;
  return unnamed_file(most_bytes());
}

std::string IndexHome::keep(EventIndex& index, const std::string& document) {
  if (begun_.empty()) return "no place for it beside the traces nor in the cache";
  // What was read while it grew is nobody's whole.
  if (key() != key_) return forget(), "the traces have changed meanwhile";
  errno = 0;
  const bool kept =
      index.keep(key_, document) && same_file(lock_.get(), begun_) && ::rename(begun_.c_str(), path_.c_str()) == 0;
  const std::string why = errno ? std::strerror(errno) : "it cannot be written";
  if (!kept) return forget(), why;
  begun_.clear();
  lock_.reset();
  return "";
}

void IndexHome::forget() {
  if (!begun_.empty()) {
    if (same_file(lock_.get(), begun_)) ::unlink(begun_.c_str());
    begun_.clear();
    lock_.reset();
  } else if (!path_.empty()) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

}  // namespace gputrace
