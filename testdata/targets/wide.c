/* Hits wide:hit below twenty frames, in 1000 stacks of 5000 functions, each stack in its turn.
 *     wide COUNT
 * Its argument is the number of the stack. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

#define LEVELS 5
#define STACKS 1000

static volatile int sum;

typedef int step(int level, int stack);

static step *const steps[LEVELS * STACKS];

__attribute__((noinline)) static int deeper(int left, int stack) {
  if (left == 0) {
    STAP_PROBE1(wide, hit, stack);
    return sum;
  }
  sum += left;
  return deeper(left - 1, stack) + sum;
}

__attribute__((noinline)) static int next(int level, int stack) {
  return (level == LEVELS ? deeper(7, stack) : steps[stack * LEVELS + level](level + 1, stack)) + sum;
}

#define F(n) __attribute__((noinline)) static int f##n(int level, int stack) { return next(level, stack) + 1##n; }
#define TEN(do, n) do(n##0) do(n##1) do(n##2) do(n##3) do(n##4) do(n##5) do(n##6) do(n##7) do(n##8) do(n##9)
#define HUNDRED(do, n) TEN(do, n##0) TEN(do, n##1) TEN(do, n##2) TEN(do, n##3) TEN(do, n##4) TEN(do, n##5) TEN(do, n##6) TEN(do, n##7) TEN(do, n##8) TEN(do, n##9)
#define THOUSAND(do, n) HUNDRED(do, n##0) HUNDRED(do, n##1) HUNDRED(do, n##2) HUNDRED(do, n##3) HUNDRED(do, n##4) HUNDRED(do, n##5) HUNDRED(do, n##6) HUNDRED(do, n##7) HUNDRED(do, n##8) HUNDRED(do, n##9)
#define ALL(do) THOUSAND(do, 0) THOUSAND(do, 1) THOUSAND(do, 2) THOUSAND(do, 3) THOUSAND(do, 4)

ALL(F)
#define NAME(n) f##n,
static step *const steps[LEVELS * STACKS] = {ALL(NAME)};

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : STACKS;
  for (long i = 0; i < count; i++)
    sum += next(0, (int)(i % STACKS));
  return 0;
}
