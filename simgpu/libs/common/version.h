// Which of its sonames a stand-in is: one source makes several libraries.
#pragma once

#include <cstdlib>
#include <cstring>

// Made with the stubs.
extern "C" __attribute__((visibility("hidden"))) const char simlibs_soname[];

namespace simlibs {

// The number at the end of the soname.
inline int soname_major() { return std::atoi(std::strrchr(simlibs_soname, '.') + 1); }

// As cublasGetVersion says it: major × 10000 + minor × 100 + patch; a release of each major that frameworks ship.
inline int cublas_version() { return soname_major() == 12 ? 120802 : 130401; }

}  // namespace simlibs
