// Whether what is written into a directory is out of other users' reach: no link on the way that somebody else made, the
// directory our own, and nobody else may write to it. Root may use one that a single other user owns. A directory in a
// sticky one (/tmp) is fine: others cannot take its place. Cold.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace gputrace {

enum class Distrust { None, ForeignLink, ForeignOwner, Writable };

// `path`: absolute, of a directory that is there.
inline Distrust distrust_directory(const std::string& path) {
  const uid_t self = ::geteuid();
  struct stat status {};
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    if (::lstat(path.substr(0, at).c_str(), &status) != 0) continue;
    if (S_ISLNK(status.st_mode) && status.st_uid != self && status.st_uid != 0) return Distrust::ForeignLink;
  }
  if (::stat(path.c_str(), &status) != 0) return Distrust::None;  // who opens it says why not
  if (status.st_uid != self && self != 0) return Distrust::ForeignOwner;
  return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? Distrust::Writable : Distrust::None;
}

// The end of a sentence that begins with the path.
inline const char* why_distrusted(Distrust distrust) {
  switch (distrust) {
    case Distrust::ForeignLink:
      return " leads through a link that another user made";
    case Distrust::ForeignOwner:
      return " belongs to another user";
    case Distrust::Writable:
      return " is a directory that other users may write to";
    case Distrust::None:
      break;
  }
  return "";
}

}  // namespace gputrace
