// A client of CUPTI and nothing else, preloaded: asks for what device collection asks for, reads each record and throws it away. What it costs is CUPTI's own.
// BENCH_CUPTI_BUFFER: another size of its buffers, in bytes; BENCH_CUPTI_KINDS: other kinds of activity, as numbers ("10,1,2"); BENCH_CUPTI_KEYS=0: no
// records of the calls that give work.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static const char* const kKinds = "10,1,2,22,17";  // concurrent kernels, copies, memsets, peer copies, overhead

static size_t buffer_bytes = 8 << 10;

static int (*next_record)(uint8_t*, size_t, void**);
static int (*flush_all)(uint32_t);
static volatile unsigned long records;

static void requested(uint8_t** buffer, size_t* size, size_t* most) {
  void* const memory = mmap(NULL, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *buffer = memory == MAP_FAILED ? NULL : memory;
  *size = buffer_bytes;
  *most = 0;
}

static void completed(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
  (void)context, (void)stream;
  void* record = NULL;
  while (next_record(buffer, valid, &record) == 0) ++records;
  munmap(buffer, size);
}

static void leave(void) { flush_all(1); }

__attribute__((constructor)) static void begin(void) {
  const char* const bytes = getenv("BENCH_CUPTI_BUFFER");
  if (bytes) buffer_bytes = strtoul(bytes, NULL, 10);
  void* const library = dlopen("libcupti.so.13", RTLD_NOW);
  if (!library) abort();
  *(void**)&next_record = dlsym(library, "cuptiActivityGetNextRecord");
  *(void**)&flush_all = dlsym(library, "cuptiActivityFlushAll");
  int (*set_callbacks)(void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t));
  int (*enable)(int);
  int (*enable_call)(uint32_t, uint8_t);
  *(void**)&set_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
  *(void**)&enable = dlsym(library, "cuptiActivityEnable");
  *(void**)&enable_call = dlsym(library, "cuptiActivityEnableDriverApi");
  if (!next_record || !flush_all || !set_callbacks || !enable || !enable_call || set_callbacks(requested, completed))
    abort();
  const char* kinds = getenv("BENCH_CUPTI_KINDS");
  for (kinds = kinds ? kinds : kKinds; *kinds; kinds += *kinds == ',') enable((int)strtol(kinds, (char**)&kinds, 10));
  const char* const keys = getenv("BENCH_CUPTI_KEYS");
  const int with_keys = !keys || *keys != '0';
  enum { Nothing, Kernel, Graph, Copy, Memset };
#define GT_KEY_CALL(number, name, work) \
  if (with_keys && work != Nothing) enable_call(number, 1);
#include "trace/key_calls.def"
  atexit(leave);
}
