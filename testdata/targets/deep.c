/* Hits deep:hit as fast as it can below a number of frames, and prints the count, the CPU time of the hits and that of the whole process:
 * `hits COUNT NANOSECONDS NANOSECONDS`.
 *     deep COUNT THREADS DEPTH
 * Waits for a byte on standard input first. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <time.h>

static long count;
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

static double cpu_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv) {
  pthread_t threads[64];
  int others = argc > 2 ? atoi(argv[2]) - 1 : 0;
  count = argc > 1 ? atol(argv[1]) : 1000;
  depth = argc > 3 ? atoi(argv[3]) : 10;
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
