/* Hand-written probes: a naked function each, with the argument string as it is to stand in the note. */
#ifndef HANDMADE_H
#define HANDMADE_H

#include "shapes.h"

#ifdef __LP64__
#define WORD ".8byte"
#else
#define WORD ".4byte"
#endif

/* A nop and its note, like sys/sdt.h's, with provider, name and arguments given as text. */
#define NOTE(provider, name, arguments)                                                        \
  "990: nop\n"                                                                                 \
  ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                                \
  ".balign 4\n"                                                                                \
  ".4byte 992f-991f, 994f-993f, 3\n"                                                           \
  "991: .asciz \"stapsdt\"\n"                                                                  \
  "992: .balign 4\n"                                                                           \
  "993: " WORD " 990b\n" WORD " _.stapsdt.base\n" WORD " 0\n"                                  \
  ".asciz \"" provider "\"\n"                                                                  \
  ".asciz \"" name "\"\n"                                                                      \
  ".asciz \"" arguments "\"\n"                                                                 \
  "994: .balign 4\n"                                                                           \
  ".popsection\n"                                                                              \
  ".ifndef _.stapsdt.base\n"                                                                   \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                      \
  ".weak _.stapsdt.base\n"                                                                     \
  ".hidden _.stapsdt.base\n"                                                                   \
  "_.stapsdt.base: .space 1\n"                                                                 \
  ".size _.stapsdt.base, 1\n"                                                                  \
  ".popsection\n"                                                                              \
  ".endif\n"

/* Defines `void name(void)`: runs `before`, hits the probe shapes:name, runs `after`, returns. */
#define HANDMADE(name, before, arguments, after) \
  __attribute__((naked, noinline)) static void name(void) { __asm__(before "\n" NOTE("shapes", #name, arguments) after "\nret\n"); }

/* Takes a number of pages of stack and touches each, as compilers do: what is not resident cannot be captured. */
#define TAKE_PAGES_64(count) ".rept " #count "\nsub $4096, %rsp\norq $0, (%rsp)\n.endr\n"
#define TAKE_PAGES_32(count) ".rept " #count "\nsub $4096, %esp\norl $0, (%esp)\n.endr\n"

/* Hits a hand-written probe and prints its line; the values are a printf format with its arguments. */
#define HIT(name, ...)                     \
  do {                                     \
    name();                                \
    printf("fire " #name " " __VA_ARGS__); \
    printf("\n");                          \
  } while (0)

#endif
