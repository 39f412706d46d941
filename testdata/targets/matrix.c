/* Hits five probes with known values, and prints for each hit what `usdtrec script -F event,args` prints of it, without addresses.
 *     matrix [ROUNDS]
 * The arguments of round i are made of i. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

#define OPAQUE __attribute__((noinline, noclone, noipa))

struct pair {
  long long first;
  short second;
};

OPAQUE static void registers(int a, long long b, unsigned char c, short d) {
  STAP_PROBE5(matrix, registers, a, b, c, d, 77);
  printf("sdt_matrix:registers: arg1=%d arg2=%lld arg3=%d arg4=%d arg5=77\n", a, b, c, d);
}

/* Volatile locals stay in the frame. */
OPAQUE static void frame(int i) {
  volatile int a = -i;
  volatile unsigned long long b = 1000000000000ULL * i;
  volatile short c = -300;
  STAP_PROBE3(matrix, frame, a, b, c);
  printf("sdt_matrix:frame: arg1=%d arg2=%llu arg3=%d\n", a, b, c);
  a = 0; /* so that this is no leaf function, whose locals may lie below the stack pointer */
}

OPAQUE static void floats(int i) {
  volatile double a = i + 0.5;
  volatile float b = -0.25f - i;
  STAP_PROBE2(matrix, floats, a, b);
  printf("sdt_matrix:floats: arg1=%.17g arg2=%.9g\n", a, b);
  a = 0; /* so that this is no leaf function, whose locals may lie below the stack pointer */
}

OPAQUE static void pointed(volatile struct pair *pair) {
  STAP_PROBE2(matrix, pointed, pair->first, pair->second);
  printf("sdt_matrix:pointed: arg1=%lld arg2=%d\n", pair->first, pair->second);
}

OPAQUE static void text(int i, const char *text) {
  STAP_PROBE2(matrix, text, i, text);
  printf("sdt_matrix:text: arg1=%d arg2=\"%s\"\n", i, text);
}

int main(int argc, char **argv) {
  static struct pair pair;
  int rounds = argc > 1 ? atoi(argv[1]) : 8;
  for (int i = 0; i < rounds; i++) {
    char buffer[32];
    registers(i - 4, 5000000000LL * i, (unsigned char)(200 + i), (short)(-300 * i));
    frame(i);
    floats(i);
    pair = (struct pair){-6000000000LL - i, (short)(100 - i)};
    pointed(&pair);
    snprintf(buffer, sizeof buffer, "text %d", i);
    text(i, buffer);
  }
  return 0;
}
