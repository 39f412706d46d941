/* Spans from slow:request__start(id, url) to slow:request__done(id, status), most of them short.
 *     slow load THREADS COUNT EVERY MILLISECONDS
 *     slow deep DEPTH MILLISECONDS
 *     slow odd MILLISECONDS
 *     slow failed COUNT MILLISECONDS
 * Waits for a line of standard input. Then
 *     load  each thread makes COUNT spans. Of EVERY spans one sleeps so long, every second of these in a span within it, which is slow, too
 *     deep  spans within each other, of which the innermost sleeps
 *     failed  so many begins without an end, as of statements that fail, and after each tenth a span
 *     odd   a slow span in which another begins and never ends, an end without a begin, and a span that another thread ends
 * Prints `slow ID STATUS INNER OUTER` of each span that took at least a quarter of MILLISECONDS: it lasted from INNER to OUTER ns. At last `spans N`, the number of spans that ended. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <time.h>

static long count, every, milliseconds;
static long ended;

static long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000 + at.tv_nsec;
}

static void rest(void) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, 0);
}

__attribute__((noinline)) static void begin(long id, const char *url) { STAP_PROBE2(slow, request__start, id, url); }

__attribute__((noinline)) static void end(long id, int status) { STAP_PROBE2(slow, request__done, id, status); }

/* A span with so many others within it; the innermost sleeps if it is to be slow. */
static void span(long id, int within, int is_slow) {
  char url[64];
  long outer = now();
  snprintf(url, sizeof url, "/request/%ld", id);
  begin(id, url);
  long inner = now();
  if (within)
    span(id + 1, within - 1, is_slow);
  else if (is_slow)
    rest();
  int status = 200 + id % 7;
  inner = now() - inner;
  end(id, status);
  outer = now() - outer;
  __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
  if (outer * 4 >= milliseconds * 1000000)
    printf("slow %ld %d %ld %ld\n", id, status, inner, outer);
}

static void *load(void *number) {
  long first = (long)number * 1000000000 + 2;
  for (long i = 0; i < count; i++) {
    int is_slow = i % every == every - 1;
    span(first + 2 * i, is_slow && i / every % 2, is_slow);
  }
  return 0;
}

static void *end_of_other(void *unused) {
  end(400, 5);
  return unused;
}

static void odd(void) {
  pthread_t thread;
  end(99, 1);
  long outer = now();
  begin(100, "/outer");
  long inner = now();
  begin(200, "/never");
  rest();
  inner = now() - inner;
  end(100, 0);
  outer = now() - outer;
  printf("slow 100 0 %ld %ld\n", inner, outer);
  begin(400, "/elsewhere");
  rest();
  pthread_create(&thread, 0, end_of_other, 0);
  pthread_join(thread, 0);
  milliseconds *= 2;
  span(300, 0, 1);
}

static void failed(int number) {
  for (int i = 0; i < number; i++) {
    begin(1000 + i, "/failed");
    if (i % 10 == 9)
      span(2 + i, 0, 0);
  }
}

int main(int argc, char **argv) {
  char line[64];
  setvbuf(stdout, 0, _IOLBF, 0);
  if (argc < 3 || !fgets(line, sizeof line, stdin))
    return 1;
  milliseconds = atol(argv[argc - 1]);
  if (!strcmp(argv[1], "load") && argc == 6) {
    pthread_t threads[64];
    int number = atoi(argv[2]);
    count = atol(argv[3]);
    every = atol(argv[4]);
    for (long i = 0; i < number && i < 64; i++)
      pthread_create(&threads[i], 0, load, (void *)i);
    for (int i = 0; i < number && i < 64; i++)
      pthread_join(threads[i], 0);
  } else if (!strcmp(argv[1], "deep") && argc == 4)
    span(2, atoi(argv[2]) - 1, 1);
  else if (!strcmp(argv[1], "failed") && argc == 4)
    failed(atoi(argv[2]));
  else
    odd();
  printf("spans %ld\n", ended);
  return 0;
}
