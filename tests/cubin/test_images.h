#pragma once
// The images that make_images.sh left, and reading of what ptxas printed about them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "cubin/code_image.h"

namespace gputrace {

inline std::string images_dir() {
  const char* dir = std::getenv("CUBIN_IMAGES");
  return dir == nullptr ? "" : dir;
}

inline std::string slurp(const std::string& name) {
  std::ifstream in(images_dir() + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline ByteSpan bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

inline bool have_images() { return std::ifstream(images_dir() + "/done").good(); }

#define NEED_IMAGES() \
  if (!::gputrace::have_images()) GTEST_SKIP() << "no nvcc: no images to read"

struct PtxasFacts {
  std::uint32_t registers = 0, stack = 0, shared = 0;
};

// "Compiling entry function 'k' …", "N bytes stack frame", "Used R registers, …, S bytes smem".
inline std::map<std::string, PtxasFacts> ptxas_facts(const std::string& log) {
  std::map<std::string, PtxasFacts> facts;
  std::istringstream in(log);
  PtxasFacts* now = nullptr;
  for (std::string line; std::getline(in, line);) {
    const auto quoted = line.find("entry function '");
    if (quoted != std::string::npos) {
      const auto begin = quoted + 16;
      now = &facts[line.substr(begin, line.find('\'', begin) - begin)];
    }
    if (now == nullptr) continue;
    unsigned value = 0;
    if (std::sscanf(line.c_str(), " %u bytes stack frame", &value) == 1) now->stack = value;
    const auto used = line.find("Used ");
    if (used != std::string::npos) std::sscanf(line.c_str() + used, "Used %u registers", &now->registers);
    const auto smem = line.find(" bytes smem");
    if (smem != std::string::npos) {
      const auto begin = line.rfind(' ', smem - 1) + 1;
      now->shared = static_cast<std::uint32_t>(std::stoul(line.substr(begin)));
    }
  }
  return facts;
}

inline const ImageKernel* find_kernel(const CodeModule& module, std::string_view name) {
  for (const ImageKernel& kernel : module.kernels) {
    if (kernel.symbol == name) return &kernel;
  }
  return nullptr;
}

inline const CodeGlobal* find_global(const CodeModule& module, std::string_view name) {
  for (const CodeGlobal& global : module.globals) {
    if (global.symbol == name) return &global;
  }
  return nullptr;
}

}  // namespace gputrace
