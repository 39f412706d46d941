/* Probes whose operands the compiler chooses: every width, constants, floats, globals, thread-local
 * storage, indexed memory, deep frames, leaf functions (whose arguments lie below the stack pointer).
 * Built with several compilers and options; prints what it passed (shapes.h). */
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#include "shapes.h"

int global_int = -77;
struct { char pad; short half; long long wide; } global_struct = {1, -555, -6000000000LL};
static double static_double = 6.25;
__thread int thread_local_int = 4242;
extern char elsewhere[];
char elsewhere[64] = "elsewhere";

/* Keeps the compiler from knowing what lies behind a pointer. */
OPAQUE static void escape(volatile void *pointer) { __asm__ volatile("" : : "g"(pointer) : "memory"); }

OPAQUE static void narrow_signed(signed char a, short b, int c, long long d) { FIRE(narrow_signed, a, b, c, d); }
OPAQUE static void narrow_unsigned(unsigned char a, unsigned short b, unsigned c, unsigned long long d) {
  FIRE(narrow_unsigned, a, b, c, d);
}

/* All widths, with a value and its negative. */
static void narrow(long long seed) {
  narrow_signed((signed char)seed, (short)(seed * 300), (int)(seed * 20000000), seed * 90000000000000000LL);
  narrow_unsigned((unsigned char)seed, (unsigned short)(seed * 300), (unsigned)(seed * 20000000),
                  (unsigned long long)seed * 90000000000000000ULL);
}

OPAQUE static void constants(void) {
  FIRE(constants_signed, -1, 2147483647, (short)-32768, (signed char)-5, 81985529216486895LL);
  FIRE(constants_unsigned, (unsigned char)250, (unsigned short)65535, 4294967295U, 18446744073709551615ULL, 0U);
}

OPAQUE static void flags(_Bool yes, char letter, const char *text, void *null) { FIRE(flags, yes, letter, text, null); }

OPAQUE static void floats(double a, float b, double *c, float *d) {
  FIRE(floats, a, b, *c, *d);
  FIRE(float_constants, 1.5, 2.5f, -0.0);
}

OPAQUE static void globals(void) {
  FIRE(globals, global_int, global_struct.half, global_struct.wide, static_double);
  FIRE(addresses, &global_int, elsewhere, &elsewhere[7]);
  FIRE(thread_local, thread_local_int);
}

OPAQUE static void indexed(short *numbers, long index, long long *wide) {
  FIRE(indexed, numbers[index], wide[index], numbers[index + 2]);
}

/* Arguments in the frame, more of them than there are registers. */
OPAQUE static void many(int a, long b, short c, unsigned char d, long long e, int f, long g, unsigned h, signed char i,
                        int j, unsigned short k, long l) {
  FIRE(many, a, b, c, d, e, f, g, h, i, j, k, l);
}

/* Locals that live more than 4 KiB from the stack pointer, and elements of a stack array. */
OPAQUE static void deep(int index) {
  volatile long long before = 1234567890123LL;
  volatile int numbers[1200];
  volatile short after = -321;
  escape(&before);
  escape(numbers);
  escape(&after);
  numbers[index] = index * 1000;
  numbers[1199] = -index;
  FIRE(deep, before, after, numbers[index], numbers[1199]);
}

/* Leaf functions: without a call in them, compilers use the red zone below the stack pointer. */
OPAQUE static void leaf_ints(int a, long b, short c) {
  volatile int x = a;
  volatile long y = b;
  STAP_PROBE4(shapes, leaf_ints, x, y, c, 7);
}

OPAQUE static void leaf_floats(double a, float b) {
  volatile double x = a;
  STAP_PROBE2(shapes, leaf_floats, x, b);
}

OPAQUE static void no_arguments(void) { STAP_PROBE(shapes, no_arguments); }

int main(void) {
  static short shorts[8] = {1, -2, 3, -4, 5, -6, 7, -8};
  static long long longs[8] = {10, -20, 30, -4000000000LL, 50};
  setvbuf(stdout, 0, _IOLBF, 0);
  for (long long seed = -100; seed <= 100; seed += 50)
    narrow(seed);
  constants();
  flags(1, 'x', "text", 0);
  for (int i = 0; i < 3; i++) {
    double in_memory = 1e300 / (i + 1);
    float narrow_in_memory = -0.1f * i;
    floats(3.25 * i, 0.1f + i, &in_memory, &narrow_in_memory);
  }
  globals();
  indexed(shorts, 3, longs);
  many(1, -2, 3, 4, -5000000000LL, 6, -7, 4000000000U, -9, 10, 60000, -12);
  deep(5);
  deep(1100);
  for (int i = -1; i < 2; i++) {
    volatile long wide = -3L * i;
    leaf_ints(i, wide, (short)(i * 9));
    printf("fire leaf_ints %d %ld %d =7\n", i, wide, i * 9);
    leaf_floats(i * 0.5, i * 0.25f);
    printf("fire leaf_floats f%.17g f%.17g\n", i * 0.5, (double)(i * 0.25f));
  }
  no_arguments();
  printf("fire no_arguments\n");
  return 0;
}
