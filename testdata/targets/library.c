/* Probes in a shared library, one of them in code that a constructor runs. */
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#include "shapes.h"

int library_state = 5;

OPAQUE static void in_constructor(int value) { FIRE(loaded, value); }

__attribute__((constructor)) static void load(void) { in_constructor(library_state); }

OPAQUE void library_work(int a, const char *text, double b) {
  FIRE(work, a, text, b);
  FIRE(state, library_state, &library_state);
}
