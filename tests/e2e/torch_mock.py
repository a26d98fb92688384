# A library that offers what PyTorch offers: at::RecordFunction with operations of the test's own in it, and an allocator that tells
# libc10's functions what it gives out. What real versions of PyTorch say is compared by `./dev frameworks`.
from harness import *

LIBRARY = r'''
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
namespace at {
struct ObserverContext;
struct RecordFunction {  // as far as it is read
  char before[88]; uint64_t thread; uint8_t scope; char between[63];
  union { const void* schema; const char* text; };
  char rest[LONG ? 24 : 0];
  uint8_t is_schema; char pad[7];
  int64_t sequence;
  char inputs[KEYWORDS ? 96 : 40];
  uint64_t forward_thread;
  const char* name() const;
  static uint64_t currentThreadId();
};
static_assert(offsetof(RecordFunction, sequence) == (LONG ? 200 : 176));
struct RecordFunctionCallback {
  void* (*start)(void*, const RecordFunction&);
  void (*end)(const RecordFunction&, void*);
  double probability; bool scopes[10]; bool needs[3];
};
static RecordFunctionCallback callback;
static int callbacks;
__attribute__((visibility("default"))) uint64_t addGlobalCallback(RecordFunctionCallback given) { callback = given; ++callbacks; return 1; }
const char* RecordFunction::name() const { return is_schema ? *static_cast<const char* const*>(schema) : text; }
uint64_t RecordFunction::currentThreadId() {
  static std::atomic<uint64_t> threads;
  static thread_local const uint64_t number = ++threads;
  return number;
}
__attribute__((visibility("default"))) const char* force(const RecordFunction& f) { return f.name(); }
static thread_local uint64_t forward_thread = 1;
namespace sequence_number {
static thread_local uint64_t next;
__attribute__((visibility("default"))) uint64_t peek() { return next; }
}
}
#if LONG
namespace at { __attribute__((visibility("default"))) std::string show_config() { return ""; } }
#endif
struct Schema { const char* name; };
extern "C" int registered() { return at::callbacks; }
// Whose forward operations those of the calling thread's backward pass belong to; the first thread that has one is 1.
extern "C" void is_backward_of(long thread) { at::forward_thread = thread; }
// One operation around `inside`. It makes a node of the backward pass, where it has a number and is none of "data::".
extern "C" void operation(const char* name, int is_schema, int scope, long sequence, void (*inside)()) {
  static Schema schemas[16]; static char names[16][64];
  at::RecordFunction function{};
  function.scope = scope; function.is_schema = is_schema; function.sequence = sequence; function.text = name;
  function.thread = at::RecordFunction::currentThreadId();
  if (scope == 1) function.forward_thread = at::forward_thread;
  if (is_schema) {
    int i = 0;
    while (schemas[i].name && strcmp(schemas[i].name, name)) ++i;
    if (!schemas[i].name) schemas[i].name = strcpy(names[i], name);
    function.schema = &schemas[i];
  }
  BROKEN
  void* context = &context;
  at::sequence_number::next = sequence < 0 ? 0 : sequence;
  if (at::callback.start) at::callback.start(&context, function);
  inside();
  if (sequence >= 0 && strncmp(name, "data::", 6)) at::sequence_number::next = sequence + 1;
  if (at::callback.start) at::callback.end(function, context);
}
'''

# What libc10 defines, and the allocator beside it that calls it by name.
C10 = r'''
#include <cstdint>
#include <cstddef>
namespace c10 {
struct Device { int8_t type, index; };
static long reports, refusals;
__attribute__((visibility("default"))) void reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device) { ++reports; }
__attribute__((visibility("default"))) void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device) { ++refusals; }
}
extern "C" long reports() { return c10::reports; }
extern "C" long refusals() { return c10::refusals; }
'''
ALLOCATOR = r'''
#include <cstdint>
#include <cstddef>
namespace c10 {
struct Device { int8_t type, index; };
void reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device);
void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device);
}
static size_t allocated;
extern "C" void change(long address, long bytes, long reserved, int type) {
  if (type == 1) allocated += bytes;
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), bytes, allocated, reserved, {int8_t(type), 0});
}
extern "C" void refuse(long bytes) { c10::reportOutOfMemoryToProfiler(bytes, allocated, 0, {1, 0}); }
'''


def torch_library(version, long_strings=True, broken=''):
    """The path of a libtorch_cpu.so of that version."""
    place = scratch('torch')
    os.makedirs(os.path.join(place, 'lib'), exist_ok=True)
    with open(os.path.join(place, 'version.py'), 'w') as file:
        file.write(f"__all__ = ['__version__']\n__version__ = '{version}+cu132'\n")
    keywords = int(version.split('.')[1]) >= 4  # it keeps arguments by name
    text = LIBRARY.replace('LONG', str(int(long_strings))).replace('KEYWORDS', str(int(keywords))).replace('BROKEN', broken)
    return shared_library(os.path.join(place, 'lib', 'libtorch_cpu.so'), text)


def allocator_libraries():
    """The paths of a libc10 and of an allocator that is linked to it."""
    c10 = shared_library(scratch('libc10.so'), C10)
    return c10, shared_library(scratch('libc10_cuda.so'), ALLOCATOR, c10)


def shared_library(path, text, *others):
    source = path + '.cpp'
    with open(source, 'w') as file:
        file.write(text)
    subprocess.run(['g++', '-std=c++17', '-O1', '-fPIC', '-shared', source, *others, '-o', path], check=True)
    return path
