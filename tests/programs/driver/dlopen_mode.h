#pragma once

#include <dlfcn.h>

#include "tests/programs/options.h"

// mode=local (the default), global or deepbind, as dlopen wants it.
inline int dlopen_mode(int argc, char** argv) {
  const char* mode = text_option(argc, argv, "mode", "local");
  if (std::strcmp(mode, "global") == 0) {
    return RTLD_NOW | RTLD_GLOBAL;
  }
  return std::strcmp(mode, "deepbind") == 0 ? RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND : RTLD_NOW | RTLD_LOCAL;
}
