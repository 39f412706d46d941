/* Probes whose names are no C identifiers, or differ from what people type. */
#include "handmade.h"

#define ODD(function, provider, name) \
  __attribute__((naked, noinline)) static void function(void) { __asm__(NOTE(provider, name, "8@%rdi") "ret\n"); }

ODD(plain, "odd", "gc__start")
ODD(hyphen, "odd", "gc-done")
ODD(quotes, "odd", "it's\\\"so\\\"")
ODD(dots, "odd.pro-vider", "a.b")
ODD(spoof, "odd", "clear\\033[2Jscreen")
ODD(foreign, "odd", "gr\303\266\303\237e")

int main(void) {
  plain();
  hyphen();
  quotes();
  dots();
  spoof();
  foreign();
  return 0;
}
