/* How a target tells the test what it passed to a probe: one line on standard output a hit,
 *
 *     fire NAME VALUE...
 *
 * with integers in decimal and floats as f1.5, with all their digits. A value may be marked:
 *     =5     the recorder must have it
 *     ?5     the recorder may have it; if so, it must be this one
 *     !TEXT  the recorder cannot have it, and says so with a reason that contains TEXT ('_' for blank)
 *     !TEXT|5  the same for a recorder that does not read memory; one that does must have 5
 * An unmarked value is judged by the operand that the compiler chose for it. */
#ifndef SHAPES_H
#define SHAPES_H

#include <stdio.h>

#ifdef __clang__
#define OPAQUE __attribute__((noinline))
#else
#define OPAQUE __attribute__((noinline, noclone, noipa))
#endif

static inline void show_signed(long long value) { printf(" %lld", value); }
static inline void show_unsigned(unsigned long long value) { printf(" %llu", value); }
static inline void show_pointer(const volatile void *value) { printf(" %llu", (unsigned long long)(unsigned long)value); }
static inline void show_float(double value) { printf(" f%.17g", value); }

#define SHOW(value)                                                                          \
  _Generic((value),                                                                          \
      _Bool: show_unsigned, char: show_signed, signed char: show_signed, short: show_signed, \
      int: show_signed, long: show_signed, long long: show_signed,                           \
      unsigned char: show_unsigned, unsigned short: show_unsigned, unsigned: show_unsigned,  \
      unsigned long: show_unsigned, unsigned long long: show_unsigned,                       \
      float: show_float, double: show_float, default: show_pointer)(value);

#define SHOW_1(a) SHOW(a)
#define SHOW_2(a, ...) SHOW(a) SHOW_1(__VA_ARGS__)
#define SHOW_3(a, ...) SHOW(a) SHOW_2(__VA_ARGS__)
#define SHOW_4(a, ...) SHOW(a) SHOW_3(__VA_ARGS__)
#define SHOW_5(a, ...) SHOW(a) SHOW_4(__VA_ARGS__)
#define SHOW_6(a, ...) SHOW(a) SHOW_5(__VA_ARGS__)
#define SHOW_7(a, ...) SHOW(a) SHOW_6(__VA_ARGS__)
#define SHOW_8(a, ...) SHOW(a) SHOW_7(__VA_ARGS__)
#define SHOW_9(a, ...) SHOW(a) SHOW_8(__VA_ARGS__)
#define SHOW_10(a, ...) SHOW(a) SHOW_9(__VA_ARGS__)
#define SHOW_11(a, ...) SHOW(a) SHOW_10(__VA_ARGS__)
#define SHOW_12(a, ...) SHOW(a) SHOW_11(__VA_ARGS__)
#define SHOW_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, shower, ...) shower

/* Prints the line of a hit. */
#define FIRED(name, ...)                                                                             \
  do {                                                                                               \
    printf("fire %s", #name);                                                                        \
    SHOW_PICK(__VA_ARGS__, SHOW_12, SHOW_11, SHOW_10, SHOW_9, SHOW_8, SHOW_7, SHOW_6, SHOW_5,        \
              SHOW_4, SHOW_3, SHOW_2, SHOW_1, 0)(__VA_ARGS__)                                        \
    printf("\n");                                                                                    \
  } while (0)

/* Hits a probe of provider `shapes` and prints its line. The arguments are evaluated twice. */
#define FIRE(name, ...)                                                                              \
  do {                                                                                               \
    STAP_PROBEV(shapes, name, __VA_ARGS__);                                                          \
    FIRED(name, __VA_ARGS__);                                                                        \
  } while (0)

#endif
