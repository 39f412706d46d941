/* The rest of a target that defines hit(), which hits `count` times, in one thread or several. Waits for a byte on standard input, then prints
 * the number of hits, the CPU time of the hits and that of the whole process: `hits COUNT NANOSECONDS NANOSECONDS`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long count;

static void *hit(void *unused);

static double cpu_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Arguments: COUNT [THREADS]. Returns the exit status. */
static int timed_hits(int argc, char **argv) {
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
