// nvtx_c [early=1] [exit=N]: every form of the C interface of NVTX v3, from two threads, around launches. Prints one JSON
// line per NVTX event, in order: thread (0 the main one), what, domain, message, category, color, payload type and bits; and
// one per name that it gives. early=1: domains, strings, names and three open ranges before the first CUDA call.
#define _GNU_SOURCE
#include <cuda.h>
#include <inttypes.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUST(call)                                                    \
  do {                                                                \
    const CUresult result_ = (call);                                  \
    if (result_ != CUDA_SUCCESS) {                                    \
      fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, result_); \
      exit(70);                                                       \
    }                                                                 \
  } while (0)

static const char kImage[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry step(.param .u64 data) { ret; }\n";

static CUfunction function;
static CUstream stream;
static nvtxDomainHandle_t domain, other;
static nvtxStringHandle_t registered, wide_registered;

static void event(int thread, const char* what, const char* in, const char* message, uint32_t category, uint32_t color, int type,
                  uint64_t bits) {
  printf("{\"thread\":%d,\"what\":\"%s\",\"domain\":\"%s\",\"message\":\"%s\",\"category\":%u,\"color\":%u,\"payload_type\":%d,"
         "\"payload\":%" PRIu64 "}\n",
         thread, what, in, message, category, color, type, bits);
}

static void named(const char* what, const char* in, uint64_t object, const char* name) {
  printf("{\"named\":\"%s\",\"domain\":\"%s\",\"object\":%" PRIu64 ",\"name\":\"%s\"}\n", what, in, object, name);
}

static void launch(void) {
  CUdeviceptr none = 0;
  void* arguments[] = {&none};
  MUST(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

static nvtxEventAttributes_t attributes(uint32_t category, uint32_t color, int type, uint64_t bits) {
  nvtxEventAttributes_t all;
  memset(&all, 0, sizeof all);
  all.version = NVTX_VERSION;
  all.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  all.category = category;
  all.colorType = color ? NVTX_COLOR_ARGB : NVTX_COLOR_UNKNOWN;
  all.color = color;
  all.payloadType = type;
  all.payload.ullValue = bits;
  return all;
}

static uint64_t bits_of_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// What a push or a pop returns goes into the output too: it must not depend on us.
static void core(int thread) {
  nvtxMarkA("mark a");
  event(thread, "mark", "", "mark a", 0, 0, 0, 0);
  nvtxMarkW(L"mark \u00e4\u20ac\U0001f600");
  event(thread, "mark", "", "mark \u00e4\u20ac\U0001f600", 0, 0, 0, 0);
  const struct {
    int type;
    uint64_t bits;
  } payloads[] = {{NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, 1ull << 63},   {NVTX_PAYLOAD_TYPE_INT64, (uint64_t)-5},
                  {NVTX_PAYLOAD_TYPE_DOUBLE, bits_of_double(2.5)},  {NVTX_PAYLOAD_TYPE_UNSIGNED_INT32, 0xfffffff0u},
                  {NVTX_PAYLOAD_TYPE_INT32, (uint32_t)-7},          {NVTX_PAYLOAD_TYPE_FLOAT, bits_of_float(-1.25f)}};
  for (unsigned i = 0; i < sizeof payloads / sizeof *payloads; ++i) {
    char text[32];
    snprintf(text, sizeof text, "payload %u", i);
    nvtxEventAttributes_t all = attributes(i + 1, 0xff00ff00u + i, payloads[i].type, payloads[i].bits);
    all.messageType = NVTX_MESSAGE_TYPE_ASCII;
    all.message.ascii = text;
    nvtxMarkEx(&all);
    event(thread, "mark", "", text, i + 1, 0xff00ff00u + i, payloads[i].type, payloads[i].bits);
  }
  const int outer = nvtxRangePushA("outer");
  event(thread, "push", "", "outer", 0, 0, 0, 0);
  launch();
  const int inner = nvtxRangePushW(L"inner");
  event(thread, "push", "", "inner", 0, 0, 0, 0);
  launch();
  nvtxEventAttributes_t all = attributes(0, 0, 0, 0);
  const int bare = nvtxRangePushEx(&all);
  event(thread, "push", "", "", 0, 0, 0, 0);
  const int popped = nvtxRangePop();
  event(thread, "pop", "", "", 0, 0, 0, 0);
  nvtxRangePop();
  event(thread, "pop", "", "", 0, 0, 0, 0);
  nvtxRangePop();
  event(thread, "pop", "", "", 0, 0, 0, 0);
  printf("levels %d %d %d %d\n", outer, inner, bare, popped);
  all = attributes(9, 0x80000001u, 0, 0);
  all.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  all.message.unicode = L"started ex";
  const nvtxRangeId_t first = nvtxRangeStartEx(&all);
  event(thread, "start", "", "started ex", 9, 0x80000001u, 0, 0);
  const nvtxRangeId_t second = nvtxRangeStartA("started a");
  event(thread, "start", "", "started a", 0, 0, 0, 0);
  const nvtxRangeId_t third = nvtxRangeStartW(L"started w");
  event(thread, "start", "", "started w", 0, 0, 0, 0);
  launch();
  nvtxRangeEnd(first);
  event(thread, "end", "", "", 0, 0, 0, 0);
  nvtxRangeEnd(third);
  event(thread, "end", "", "", 0, 0, 0, 0);
  nvtxRangeEnd(second);
  event(thread, "end", "", "", 0, 0, 0, 0);
}

static void domains(int thread) {
  nvtxEventAttributes_t all = attributes(3, 0xff112233u, 0, 0);
  all.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  all.message.registered = registered;
  nvtxDomainMarkEx(domain, &all);
  event(thread, "mark", "numerics", "registered text", 3, 0xff112233u, 0, 0);
  nvtxDomainRangePushEx(domain, &all);
  event(thread, "push", "numerics", "registered text", 3, 0xff112233u, 0, 0);
  all.message.registered = wide_registered;
  nvtxDomainRangePushEx(other, &all);
  event(thread, "push", "other \u00fc", "registered \u00f6", 3, 0xff112233u, 0, 0);
  launch();
  nvtxDomainRangePop(domain);
  event(thread, "pop", "numerics", "", 0, 0, 0, 0);
  nvtxDomainRangePop(other);
  event(thread, "pop", "other \u00fc", "", 0, 0, 0, 0);
  all.message.registered = registered;
  const nvtxRangeId_t range = nvtxDomainRangeStartEx(domain, &all);
  event(thread, "start", "numerics", "registered text", 3, 0xff112233u, 0, 0);
  launch();
  nvtxDomainRangeEnd(domain, range);
  event(thread, "end", "numerics", "", 0, 0, 0, 0);
}

typedef struct {
  double loss;
  int32_t step;
} Numbers;

static void payloads(int thread) {
  const nvtxPayloadSchemaEntry_t entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "loss", NULL, 0, offsetof(Numbers, loss), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "step", NULL, 0, offsetof(Numbers, step), NULL, NULL}};
  nvtxPayloadSchemaAttr_t attr;
  memset(&attr, 0, sizeof attr);
  attr.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  attr.name = "Numbers";
  attr.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attr.entries = entries;
  attr.numEntries = 2;
  attr.payloadStaticSize = sizeof(Numbers);
  attr.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5;
  nvtxPayloadSchemaRegister(domain, &attr);
  named("schema", "numerics", NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, "Numbers");
  const Numbers numbers = {0.5, 7};
  const nvtxPayloadData_t data = {NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, sizeof numbers, &numbers};
  nvtxEventAttributes_t all = attributes(0, 0, NVTX_PAYLOAD_TYPE_EXT, (uint64_t)(uintptr_t)&data);
  all.reserved0 = 1;
  all.messageType = NVTX_MESSAGE_TYPE_ASCII;
  all.message.ascii = "with schema";
  nvtxDomainMarkEx(domain, &all);
  event(thread, "mark", "numerics", "with schema", 0, 0, 256, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
  nvtxRangePushPayload(domain, &data, 1);
  event(thread, "push", "numerics", "", 0, 0, 256, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
  nvtxRangePopPayload(domain, &data, 1);
  event(thread, "pop", "numerics", "", 0, 0, 256, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
  nvtxMarkPayload(domain, &data, 1);
  event(thread, "mark", "numerics", "", 0, 0, 256, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
  const nvtxRangeId_t range = nvtxRangeStartPayload(domain, &data, 1);
  event(thread, "start", "numerics", "", 0, 0, 256, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
  nvtxRangeEndPayload(domain, range, &data, 1);
  event(thread, "end", "numerics", "", 0, 0, 256, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
  printf("enabled %d\n", nvtxDomainIsEnabled(domain));
}

static void names_of_domains(void) {
  domain = nvtxDomainCreateA("numerics");
  named("domain", "numerics", 0, "numerics");
  other = nvtxDomainCreateW(L"other \u00fc");
  named("domain", "other \u00fc", 0, "other \u00fc");
  registered = nvtxDomainRegisterStringA(domain, "registered text");
  wide_registered = nvtxDomainRegisterStringW(other, L"registered \u00f6");
  nvtxNameCategoryA(1, "first category");
  named("category", "", 1, "first category");
  nvtxDomainNameCategoryW(domain, 3, L"third category");
  named("category", "numerics", 3, "third category");
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main thread");
  named("thread", "", (uint64_t)syscall(SYS_gettid), "main thread");
}

static void begin_cuda(void) {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&module, kImage));
  MUST(cuModuleGetFunction(&function, module, "step"));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  nvtxNameCuStreamA(stream, "the stream");
  named("stream", "", (uint64_t)(uintptr_t)stream, "the stream");
  nvtxNameCuContextW(context, L"the context");
  named("context", "", (uint64_t)(uintptr_t)context, "the context");
  nvtxNameCuDeviceA(device, "the device");
  named("device", "", (uint64_t)device, "the device");
}

static void* second_thread(void* context) {
  MUST(cuCtxSetCurrent((CUcontext)context));
  core(1);
  domains(1);
  return NULL;
}

int main(int argc, char** argv) {
  int early = 0, code = 0;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "early=", 6) == 0) early = atoi(argv[i] + 6);
    if (strncmp(argv[i], "exit=", 5) == 0) code = atoi(argv[i] + 5);
  }
  nvtxRangeId_t open = 0;
  if (early) {
    names_of_domains();
    nvtxMarkA("before everything");  // not recorded: nothing is before the first CUDA call
    nvtxRangePushA("closed before");
    nvtxRangePop();
    nvtxRangePushA("open before");
    event(0, "push", "", "open before", 0, 0, 0, 0);
    nvtxEventAttributes_t all = attributes(3, 0xff000001u, NVTX_PAYLOAD_TYPE_INT64, 11);
    all.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    all.message.registered = registered;
    nvtxDomainRangePushEx(domain, &all);
    event(0, "push", "numerics", "registered text", 3, 0xff000001u, NVTX_PAYLOAD_TYPE_INT64, 11);
    open = nvtxRangeStartA("started before");
    event(0, "start", "", "started before", 0, 0, 0, 0);
  }
  begin_cuda();
  if (!early) names_of_domains();
  core(0);
  domains(0);
  payloads(0);
  CUcontext context;
  MUST(cuCtxGetCurrent(&context));
  pthread_t thread;
  pthread_create(&thread, NULL, second_thread, context);
  pthread_join(thread, NULL);
  if (early) {
    nvtxRangeEnd(open);
    event(0, "end", "", "", 0, 0, 0, 0);
    nvtxDomainRangePop(domain);
    event(0, "pop", "numerics", "", 0, 0, 0, 0);
    nvtxRangePop();
    event(0, "pop", "", "", 0, 0, 0, 0);
  }
  nvtxDomainDestroy(other);
  MUST(cuCtxSynchronize());
  return code;
}
