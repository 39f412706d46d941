/* A stack without frame pointers (compile it with -O2 -fomit-frame-pointer): recursion, a callback of the C library, a signal handler.
 *     stacks DEPTH
 * The probe `hit` is hit below DEPTH + 1 frames of `middle`: in a signal handler, in callbacks of qsort, and at last from main. Its argument
 * is DEPTH. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

static volatile int sum;
static int depth;

__attribute__((noinline)) int leaf(int number) {
  char text[40];
  snprintf(text, sizeof text, "%d", number);
  STAP_PROBE1(stacks, hit, depth);
  return text[0];
}

__attribute__((noinline)) int middle(int left) {
  int result = left ? middle(left - 1) + 1 : leaf(left);
  sum += result;
  return result;
}

static int compare(const void *a, const void *b) {
  sum += middle(depth);
  return *(const int *)a - *(const int *)b;
}

static void handler(int number) {
  sum += middle(depth) + number;
}

int main(int argc, char **argv) {
  int numbers[] = {3, 1, 2, 6, 5, 4};
  depth = argc > 1 ? atoi(argv[1]) : 3;
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  qsort(numbers, sizeof numbers / sizeof *numbers, sizeof *numbers, compare);
  sum += middle(depth);
  return 0;
}
