// The peer's event: the same facts as a launch record. (lttng-ust reads this header several times: no #pragma once.)
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER gputrace_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/lttng_event.h"
#if !defined(GPUTRACE_BENCH_LTTNG_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define GPUTRACE_BENCH_LTTNG_EVENT_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT(gputrace_bench, launch,
                           LTTNG_UST_TP_ARGS(uint64_t, begin, uint64_t, end, uint64_t, function, uint32_t, grid_x,
                                             uint32_t, block_x),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, begin, begin)
                                                   lttng_ust_field_integer(uint64_t, end, end)
                                                       lttng_ust_field_integer(uint64_t, function, function)
                                                           lttng_ust_field_integer(uint32_t, grid_x, grid_x)
                                                               lttng_ust_field_integer(uint32_t, block_x, block_x)))
#endif
#include <lttng/tracepoint-event.h>
