/* Spans that begin and end in a function whose code is inlined (compile it with -O2 -g): within:request__start and within:request__done, a
 * hundred times. */
#include <sys/sdt.h>

static volatile int sum;

static inline __attribute__((always_inline)) void request(int number) {
  STAP_PROBE1(within, request__start, number);
  sum += number;
  STAP_PROBE1(within, request__done, number);
}

__attribute__((noinline)) void serves(int number) {
  request(number);
  sum++;
}

int main(void) {
  for (int number = 0; number < 100; number++)
    serves(number);
  return 0;
}
