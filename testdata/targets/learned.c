/* Stacks of some depths, one after the other, each for a second or more, so that a recorder sees many of one before the next begins.
 *     learned DEPTH...
 * The probe `hit` is hit below DEPTH frames of `deeper` of 96 bytes or more. Its argument is DEPTH. */
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>

static volatile int sum;

__attribute__((noinline)) int hits(int depth) {
  const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
  for (int round = 0; round < 100; round++) {
    for (int hit = 0; hit < 10; hit++)
      STAP_PROBE1(learned, hit, depth);
    nanosleep(&pause, NULL);
  }
  return depth;
}

__attribute__((noinline)) int deeper(int left, int depth) {
  volatile char frame[64];
  frame[0] = left;
  int result = left > 1 ? deeper(left - 1, depth) : hits(depth);
  sum += frame[0];
  return result + sum;
}

int main(int argc, char **argv) {
  for (int argument = 1; argument < argc; argument++)
    sum += deeper(atoi(argv[argument]), atoi(argv[argument]));
  return 0;
}
