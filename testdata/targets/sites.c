/* One probe with many sites whose operands, sizes and signs differ. */
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#include "shapes.h"

__attribute__((always_inline)) static inline void inlined(int value) { FIRE(inlined, value, value + 1); }

OPAQUE static void first(int a) { FIRE(shared, a, 'a'); }
OPAQUE static void second(long a, unsigned char b) { FIRE(shared, a, b); }
OPAQUE static void third(short a) { FIRE(shared, a, -1LL); }
OPAQUE static void fourth(void) { FIRE(shared, (unsigned char)250, 4000000000U); }
OPAQUE static void fifth(int a) {
  volatile int far[1300];
  for (int i = 0; i < 1300; i++)
    far[i] = a - i;
  FIRE(shared, far[0], far[1299]);
}
OPAQUE static void sixth(double a, float b) { FIRE(shared, a, b); }

int main(void) {
  setvbuf(stdout, 0, _IOLBF, 0);
  for (int i = 0; i < 4; i++) {
    first(-i);
    second(-5000000000L * i, (unsigned char)(200 + i));
    third((short)(-100 * i));
    fourth();
    fifth(i);
    sixth(i * 0.75, i * -0.5f);
    inlined(i);
    inlined(i * 10);
    inlined(7);
  }
  return 0;
}
