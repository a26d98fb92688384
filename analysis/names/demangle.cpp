#include "analysis/names/demangle.h"

#define HAVE_DECL_BASENAME 1  // or libiberty declares its own, which contradicts <cstring>
#include <libiberty/demangle.h>
#include <pthread.h>

#include <atomic>
#include <csetjmp>

namespace gputrace {
namespace {

constexpr std::size_t kPlainBytes = 1024;  // up to here the caller's own stack is deep enough for any nesting
// Virtual; touched only as deep as a name nests. Opening letters nest at most kMaxNesting deep, back references ("PS_"
// after "PS_") a level for every 3 bytes of input: 22,000 levels of less than 8 KiB.
constexpr std::size_t kDeepStack = 256u << 20;
constexpr std::size_t kMaxNesting = 4096;

// A cheap upper look at how deep a name nests: opening letters against E, source names skipped.
bool nests_too_deep(const std::string& symbol) {
  std::size_t depth = 0, prefixes = 0;
  for (std::size_t i = 2; i < symbol.size(); ++i) {
    const char c = symbol[i];
    if (c >= '0' && c <= '9') {
      std::size_t length = 0;
      while (i < symbol.size() && symbol[i] >= '0' && symbol[i] <= '9') {
        length = length * 10 + static_cast<std::size_t>(symbol[i++] - '0');
        if (length > symbol.size()) return false;  // no valid name: the demangler will say so
      }
      if (length == 0 || length > symbol.size() - i)
        --i;
      else
        i += length - 1;
      prefixes = 0;
      continue;
    }
    if (c == 'N' || c == 'I' || c == 'X' || c == 'J' || c == 'F' || c == 'L')
      ++depth;
    else if (c == 'E' && depth > 0)
      --depth;
    prefixes = c == 'P' || c == 'K' || c == 'R' || c == 'O' || c == 'A' || c == 'D' ? prefixes + 1 : 0;
    if (depth + prefixes > kMaxNesting) return true;
  }
  return false;
}

struct Sink {
  std::string text;
  std::jmp_buf too_long;
};

void append(const char* piece, std::size_t size, void* opaque) {
  auto* sink = static_cast<Sink*>(opaque);
  if (sink->text.size() + size > kMaxDemangledBytes) std::longjmp(sink->too_long, 1);  // the demangler owns no heap
  sink->text.append(piece, size);
}

// Honest names grow to two or three times.
std::atomic<std::size_t> grown{0};

void count_growth(std::size_t mangled, std::size_t written) {
  if (written > 4 * mangled) grown += written - 4 * mangled;
}

struct Job {
  const std::string* symbol;
  std::string* result;
};

void* work(void* opaque) {
  auto* job = static_cast<Job*>(opaque);
  Sink* sink = new Sink;
  bool whole = false;
  if (setjmp(sink->too_long) == 0) {
    sink->text.reserve(256);
    const int options = DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT;
    const char* const symbol = job->symbol->c_str();
    // Rust's first: its older names are C++'s with a hash at their end. It nests by its own limit.
    whole = rust_demangle_callback(symbol, DMGL_PARAMS, append, sink) != 0;
    if (!whole) {
      sink->text.clear();
      whole = cplus_demangle_v3_callback(symbol, options, append, sink) != 0;
    }
  }
  count_growth(job->symbol->size(), sink->text.size());
  if (whole) *job->result = std::move(sink->text);
  delete sink;
  return nullptr;
}

void work_on_deep_stack(Job& job) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  if (pthread_attr_setstacksize(&attributes, kDeepStack) == 0 &&
      pthread_create(&thread, &attributes, work, &job) == 0) {
    pthread_join(thread, nullptr);
  }
  pthread_attr_destroy(&attributes);
}

}  // namespace

std::string demangle(const std::string& symbol) {
  if (symbol.size() < 3 || symbol.size() > kMaxMangledBytes) return symbol;
  if (symbol.compare(0, 2, "_Z") != 0 && symbol.compare(0, 2, "_R") != 0) return symbol;
  if (symbol.find('\0') != std::string::npos || nests_too_deep(symbol) || grown > kMaxGrowth) return symbol;
  std::string result = symbol;
  Job job{&symbol, &result};
  if (symbol.size() <= kPlainBytes) {
    work(&job);
  } else {
    work_on_deep_stack(job);
  }
  return result;
}

}  // namespace gputrace
