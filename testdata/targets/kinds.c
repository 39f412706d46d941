/* Hits one of its probes as fast as it can and prints as hot.c does: `hits COUNT NANOSECONDS NANOSECONDS`.
 *     kinds COUNT THREADS req|url
 * req: four integer arguments in registers, as in hot.c; url: the second is a text. Waits for a byte on standard input first. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <time.h>

static long count;

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

static double cpu_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv) {
  pthread_t threads[64];
  int others = argc > 2 ? atoi(argv[2]) - 1 : 0;
  count = argc > 1 ? atol(argv[1]) : 1000;
  if (argc > 3)
    kind = argv[3];
  if (getchar() == EOF)
    return 1;
  double start = cpu_time();
  for (int i = 0; i < others && i < 64; i++)
    pthread_create(&threads[i], 0, hit, 0);
  hit(0);
  for (int i = 0; i < others && i < 64; i++)
    pthread_join(threads[i], 0);
  double end = cpu_time();
  printf("hits %ld %.0f %.0f\n", count * (others + 1), end - start, end);
  return 0;
}
