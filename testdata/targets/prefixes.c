/* Probes on nops of x86-64 with prefixes, also such at which the kernel plants no probe.
 *     prefixes COUNT
 * waits for a line, or the end of its standard input, and hits each COUNT times. */
#define PROVIDER "prefixes"
#include "nops.h"

#include <stdio.h>
#include <stdlib.h>

#define ZEROS ", 0, 0, 0, 0, 0"

#define SITES(each)                                             \
  each(n90, "0x90")                                             \
  each(n66_90, "0x66, 0x90")                                    \
  each(n66_66_66_90, "0x66, 0x66, 0x66, 0x90")                  \
  each(pause, "0xf3, 0x90")                                     \
  each(repne, "0xf2, 0x90")                                     \
  each(fs, "0x64, 0x90")                                        \
  each(gs, "0x65, 0x0f, 0x1f, 0x00")                            \
  each(rex, "0x48, 0x90")                                       \
  each(rep_nop3, "0xf3, 0x0f, 0x1f, 0x00")                      \
  each(nop10, "0x66, 0x66, 0x0f, 0x1f, 0x84" ZEROS)             \
  each(nop15, "0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x0f, 0x1f, 0x84" ZEROS) \
  each(endbr64, "0xf3, 0x0f, 0x1e, 0xfa")                       \
  each(lea, "0x48, 0x8d, 0x76, 0x00")                           \
  each(cs, "0x2e, 0x90")                                        \
  each(ds, "0x3e, 0x0f, 0x1f, 0x00")                            \
  each(es, "0x26, 0x66, 0x90")                                  \
  each(ss, "0x36, 0x0f, 0x1f, 0x40, 0x00")                      \
  each(cs_nop10, "0x66, 0x2e, 0x0f, 0x1f, 0x84" ZEROS)

#define SITE(name, bytes) \
  __attribute__((naked, noinline)) static void site_##name(void) { __asm__(NOTE_BEFORE(#name, "", ".byte " bytes "\n") "ret\n"); }
SITES(SITE)

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1;
  puts("ready");
  fflush(stdout);
  getchar();
  for (int i = 0; i < count; i++) {
#define HIT(name, bytes) site_##name();
    SITES(HIT)
  }
  puts("done");
  return 0;
}
