#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "app_tp.h"
#include <math.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int n[3] = {1, -2, 3};
  for (int i = 0; i < 3; i++) {
    lttng_ust_tracepoint(app, request__start, i, i == 1 ? "/a \"b\" }, { c = 1\n\t\\x" : "/index.html");
    usleep(1000 * (i + 1));
    lttng_ust_tracepoint(app, request__done, i, 200 + i);
  }
  lttng_ust_tracepoint(app, kinds, "text \001\033 \xff\xc3\xa9 z", n, 0, 1.5, INT64_MIN, UINT64_MAX);
  lttng_ust_tracepoint(app, kinds, "", n, 1, -1e300, INT64_MAX, 0);
  lttng_ust_tracepoint(app, kinds, "abcdef", n, 8, NAN, -1, 1);
  lttng_ust_tracepoint(app, kinds, "abcdef", n, 100, INFINITY, -1, 1);
  lttng_ust_tracepoint(app, kinds, "abcdef", n, -3, -0.0, 5, 1);
  lttng_ust_tracepoint(app, nothing);
  if (argc > 1) for (long i = 0; i < atol(argv[1]); i++) lttng_ust_tracepoint(app, request__done, i, 200);
}
