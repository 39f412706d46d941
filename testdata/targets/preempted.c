/* Threads that hit two probes as fast as they can, each with values of its own, so that a value of another thread in a record is seen.
 *     preempted THREADS COUNT
 * Thread T of THREADS (up to 64) hits COUNT times: preempted:even with T, the number of the hit and the string `thread T` if T is even, otherwise
 * preempted:odd with the string, and T times 1000000 plus the number. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

static long count;

__attribute__((noinline)) static void even(long thread, long number, const char *text) {
  STAP_PROBE3(preempted, even, thread, number, text);
}

__attribute__((noinline)) static void odd(const char *text, long value) {
  STAP_PROBE2(preempted, odd, text, value);
}

static void *work(void *argument) {
  long thread = (long)argument;
  char text[32];
  snprintf(text, sizeof text, "thread %ld", thread);
  for (long number = 0; number < count; number++)
    if (thread % 2)
      odd(text, thread * 1000000 + number);
    else
      even(thread, number, text);
  return 0;
}

int main(int argc, char **argv) {
  pthread_t threads[64];
  long all = argc > 2 ? atol(argv[1]) : 0;
  if (all < 1 || all > 64)
    return 2;
  count = atol(argv[2]);
  for (long thread = 0; thread < all; thread++)
    if (pthread_create(&threads[thread], 0, work, (void *)thread))
      return 1;
  for (long thread = 0; thread < all; thread++)
    pthread_join(threads[thread], 0);
  return 0;
}
