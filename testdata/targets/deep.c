/* Hits deep:hit as fast as it can below a number of frames. Input and output are those of timed_hits.h.
 *     deep COUNT THREADS DEPTH
 */
#include <string.h>
#include <sys/sdt.h>

#include "timed_hits.h"

static int depth;

__attribute__((noinline)) static int hits(volatile char *text) {
  for (long i = 0; i < count; i++)
    STAP_PROBE1(deep, hit, i);
  return text[0];
}

/* A frame of about a hundred bytes. */
__attribute__((noinline)) static int deeper(int left) {
  volatile char text[64];
  memset((char *)text, left, sizeof text);
  return (left ? deeper(left - 1) : hits(text)) + text[left & 63];
}

static void *hit(void *unused) {
  (void)unused;
  deeper(depth);
  return 0;
}

int main(int argc, char **argv) {
  depth = argc > 3 ? atoi(argv[3]) : 10;
  return timed_hits(argc, argv);
}
