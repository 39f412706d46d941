/* Hits probes with numbers of several sizes and signs.
 *     numbers COUNT [THREADS]
 * Waits for a line on standard input, hits in each of THREADS threads, prints `done`, and waits for the end of standard input. Each thread hits COUNT
 * times numbers:mixed with the number of the thread, a signed and an unsigned number of 64 bits, a signed one of 32, a signed one of 8 and an unsigned one of
 * 16 bits, and numbers:memory with the address of a number, which cannot be read at each third hit. Extremes of each size are among the numbers. It hits
 * numbers:constant once for each hit of these. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

static long count;

__attribute__((noinline)) static void mixed(int thread, int64_t wide, uint64_t upper, int32_t word, int8_t byte, uint16_t half) {
  STAP_PROBE6(numbers, mixed, thread, wide, upper, word, byte, half);
}

__attribute__((noinline)) static void memory(int thread, const int64_t *address) {
  STAP_PROBE2(numbers, memory, thread, address);
}

static void *work(void *argument) {
  int thread = (int)(long)argument;
  uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(thread + 1);
  for (long i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    /* Numbers of all magnitudes. */
    uint64_t bits = state >> (i % 64);
    int64_t wide = i % 2 ? -(int64_t)(bits >> 1) : (int64_t)(bits >> 1);
    uint64_t upper = bits;
    if (i == 3)
      wide = INT64_MIN, upper = UINT64_MAX;
    if (i == 4)
      wide = INT64_MAX, upper = 0;
    mixed(thread, wide, upper, (int32_t)bits, (int8_t)bits, (uint16_t)bits);
    memory(thread, i % 3 ? &wide : 0);
    STAP_PROBE2(numbers, constant, -1000, 70000);
  }
  return 0;
}

int main(int argc, char **argv) {
  pthread_t threads[64];
  count = argc > 1 ? atol(argv[1]) : 0;
  long all = argc > 2 ? atol(argv[2]) : 1;
  if (all < 1 || all > 64)
    return 2;
  if (getchar() == EOF)
    return 1;
  for (long thread = 0; thread < all; thread++)
    if (pthread_create(&threads[thread], 0, work, (void *)thread))
      return 1;
  for (long thread = 0; thread < all; thread++)
    pthread_join(threads[thread], 0);
  puts("done");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
