/* Hits one of its probes as fast as it can. Input and output are those of timed_hits.h.
 *     kinds COUNT THREADS req|url
 * req: four integer arguments in registers, as in hot.c; url: the second is a string. */
#include <string.h>
#include <sys/sdt.h>

#include "timed_hits.h"

__attribute__((noinline)) static void request(int id, long bytes, unsigned status, void *client) {
  STAP_PROBE4(hot, req, id, bytes, status, client);
}

__attribute__((noinline)) void request_url(int id, const char *url, unsigned status, void *client) {
  STAP_PROBE4(hot, url, id, url, status, client);
}

static const char *kind = "req";

static void *hit(void *unused) {
  (void)unused;
  if (!strcmp(kind, "url"))
    for (long i = 0; i < count; i++)
      request_url((int)i, "/api/v1/users/196501/orders", 200 + (i & 7), &count);
  else
    for (long i = 0; i < count; i++)
      request((int)i, i * 3, 200 + (i & 7), &count);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 3)
    kind = argv[3];
  return timed_hits(argc, argv);
}
