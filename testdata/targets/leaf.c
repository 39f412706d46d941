/* Hits leaf:hit in a function that calls nothing: on arm64 compilers give it no frame, and its return address stays in a register.
 *     leaf
 * main calls caller(), which calls called(). */
#include <sys/sdt.h>

__attribute__((noinline)) int called(int value) {
  STAP_PROBE1(leaf, hit, value);
  return value + 1;
}

__attribute__((noinline)) int caller(int value) { return called(value) * 2; }

int main(void) {
  volatile int sum = 0;
  for (int value = 0; value < 3; value++)
    sum += caller(value);
  return 0;
}
