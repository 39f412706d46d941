/* Hits probes of one kind as fast as it can. Input and output are those of timed_hits.h.
 *     bars COUNT THREADS KIND
 * KIND is `req`: four integers in registers; `url`: the second is a string; `keys`: a key of 1000, and a number; `span`: a begin and an end, which count as
 * one; `deep`: the integers, below twenty calls of a function (compile it with -O2 -fno-omit-frame-pointer). */
#include <string.h>
#include <sys/sdt.h>

#include "timed_hits.h"

#define DEPTH 20

static const char *kind = "req";
static volatile int sum;

__attribute__((noinline)) static void req(int id, long bytes, unsigned status, void *client) {
  STAP_PROBE4(bars, req, id, bytes, status, client);
}

__attribute__((noinline)) static void url(int id, const char *url, unsigned status, void *client) {
  STAP_PROBE4(bars, url, id, url, status, client);
}

__attribute__((noinline)) static void keys(long key, unsigned long number) { STAP_PROBE2(bars, keys, key, number); }

__attribute__((noinline)) static void span(int id) {
  STAP_PROBE1(bars, span__start, id);
  sum++;
  STAP_PROBE1(bars, span__done, id);
}

__attribute__((noinline)) static void deep(void) {
  for (long i = 0; i < count; i++)
    STAP_PROBE4(bars, deep, i, i * 3, 200 + (i & 7), &count);
}

__attribute__((noinline)) static void deeper(int left) {
  if (left)
    deeper(left - 1);
  else
    deep();
  sum++;
}

static void *hit(void *unused) {
  (void)unused;
  if (!strcmp(kind, "deep"))
    deeper(DEPTH);
  else if (!strcmp(kind, "span"))
    for (long i = 0; i < count; i++)
      span((int)i);
  else if (!strcmp(kind, "keys"))
    for (long i = 0; i < count; i++)
      keys(i % 1000, i * 7);
  else if (!strcmp(kind, "url"))
    for (long i = 0; i < count; i++)
      url((int)i, "/api/v1/users/196501/orders", 200 + (i & 7), &count);
  else
    for (long i = 0; i < count; i++)
      req((int)i, i * 3, 200 + (i & 7), &count);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 3)
    kind = argv[3];
  return timed_hits(argc, argv);
}
