/* A probe that is hit before main: in a constructor, then once in main. */
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#include "shapes.h"

OPAQUE static void hit(int number) { FIRE(first, number); }

__attribute__((constructor)) static void before_main(void) { hit(1); }

int main(void) {
  hit(2);
  return 0;
}
