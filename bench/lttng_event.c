// What an LTTng-UST event costs, with the two stamps that any call tracer takes: lttng_event BATCHES EVENTS → `NS_MIN NS_MEDIAN`.
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/lttng_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: lttng_event BATCHES EVENTS\n"), 2;
  int batches = atoi(argv[1]), events = atoi(argv[2]);
  double* ns = calloc((size_t)batches, sizeof *ns);
  for (int b = 0; b < batches; ++b) {
    double begin = now_ns();
    for (int i = 0; i < events; ++i) {
      uint64_t first = __rdtsc(), second = __rdtsc();
      lttng_ust_tracepoint(gputrace_bench, launch, first, second, 0x1000, (uint32_t)i, 256);
    }
    ns[b] = (now_ns() - begin) / events;
  }
  qsort(ns, (size_t)batches, sizeof *ns, ascending);
  printf("%.2f %.2f %d\n", ns[0], ns[batches / 2], lttng_ust_tracepoint_enabled(gputrace_bench, launch) != 0);
  free(ns);
  return 0;
}
