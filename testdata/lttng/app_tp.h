#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER app
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./app_tp.h"
#if !defined(APP_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define APP_TP_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_ENUM(app, state, LTTNG_UST_TP_ENUM_VALUES(
  lttng_ust_field_enum_value("IDLE", 0)
  lttng_ust_field_enum_value("RUN \"fast\"", 1)
  lttng_ust_field_enum_range("MANY", 5, 9)
  lttng_ust_field_enum_range("OVERLAP", 7, 12)
))
LTTNG_UST_TRACEPOINT_EVENT(app, request__start,
  LTTNG_UST_TP_ARGS(int, id, const char *, path),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, id, id) lttng_ust_field_string(path, path)))
LTTNG_UST_TRACEPOINT_EVENT(app, request__done,
  LTTNG_UST_TP_ARGS(int, id, int, status),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, id, id) lttng_ust_field_integer(int, status, status)))
LTTNG_UST_TRACEPOINT_EVENT(app, kinds,
  LTTNG_UST_TP_ARGS(const char *, text, int *, numbers, int, state, double, d, int64_t, i, uint64_t, u),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(text, text)
    lttng_ust_field_array(int, fixed, numbers, 3)
    lttng_ust_field_sequence(int, seq, numbers, unsigned, 2)
    lttng_ust_field_sequence(int, none, numbers, unsigned, 0)
    lttng_ust_field_array_text(char, chars, text, 4)
    lttng_ust_field_sequence_text(char, chars2, text, unsigned, 3)
    lttng_ust_field_enum(app, state, int, state, state)
    lttng_ust_field_float(double, d, d)
    lttng_ust_field_float(float, f, (float)d)
    lttng_ust_field_integer(int64_t, i, i)
    lttng_ust_field_integer(uint64_t, u, u)
    lttng_ust_field_integer_hex(uint64_t, h, u)
    lttng_ust_field_integer_hex(int32_t, hs, (int32_t)i)
    lttng_ust_field_integer_network(uint16_t, port, 0x5000)
    ))
LTTNG_UST_TRACEPOINT_EVENT(app, nothing, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
#endif
#include <lttng/tracepoint-event.h>
