/* Hits hot:req as fast as it can. Input and output are those of timed_hits.h.
 *     hot COUNT [THREADS]
 * Four integer arguments in registers, as in the measurements of the README. */
#include <sys/sdt.h>

#include "timed_hits.h"

__attribute__((noinline)) static void request(int id, long bytes, unsigned status, void *client) {
  STAP_PROBE4(hot, req, id, bytes, status, client);
}

static void *hit(void *unused) {
  (void)unused;
  for (long i = 0; i < count; i++)
    request((int)i, i * 3, 200 + (i & 7), &count);
  return 0;
}

int main(int argc, char **argv) {
  return timed_hits(argc, argv);
}
