/* Hits hot:req as fast as it can and prints the count, the CPU time of the hits and that of the whole process:
 * `hits COUNT NANOSECONDS NANOSECONDS`.
 *     hot COUNT [THREADS]
 * Four integer arguments in registers, as in the measurements of the README. Waits for a byte on standard input first. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>

static long count;

__attribute__((noinline)) static void request(int id, long bytes, unsigned status, void *client) {
  STAP_PROBE4(hot, req, id, bytes, status, client);
}

static void *hit(void *unused) {
  (void)unused;
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
