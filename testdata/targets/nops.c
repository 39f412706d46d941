/* Probes on a 5-byte nop, and on a 1-byte nop with a 5-byte nop after it. Linux 6.18 to 7.1 make calls of 5-byte nops with a breakpoint.
 *     nops COUNT
 * hits each COUNT times and prints `fire NAME VALUE` each time, then `wrong N` with the number of wrong results. The functions
 * leaf_* keep data below the stack pointer, the others do not. */
#define PROVIDER "nops"
#include "nops.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t in_memory;

__attribute__((noinline)) void called(void) { __asm__ volatile(""); }

/* Twice its argument, by way of the red zone. */
#define LEAF(name, nops) \
  __attribute__((naked, noinline)) static uint64_t leaf_##name(uint64_t value) { \
    __asm__("mov %rdi, -8(%rsp)\nmov %rdi, -24(%rsp)\n" \
            NOTE_BEFORE("leaf_" #name, "8@%rdi 8@-8(%rsp)", nops) \
            "mov -8(%rsp), %rax\nadd -24(%rsp), %rax\nret\n"); \
  }

/* Twice its argument, in a function that calls another. */
#define CALLER(name, nops) \
  __attribute__((naked, noinline)) static uint64_t caller_##name(uint64_t value) { \
    __asm__("push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi, %rbx\nmov %rdi, in_memory(%rip)\n" \
            NOTE_BEFORE("caller_" #name, "8@%rbx 8@in_memory(%rip)", nops) \
            "call called\nlea (%rbx,%rbx), %rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"); \
  }

LEAF(five, NOP5)
LEAF(one_five, "nop\n" NOP5)
CALLER(five, NOP5)
CALLER(one_five, "nop\n" NOP5)

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 1;
  long wrong = 0;
  for (long i = 1; i <= count; i++) {
#define RUN(name) \
  wrong += name(i) != 2 * (uint64_t)i; \
  printf("fire " #name " %ld %ld\n", i, i);
    RUN(leaf_five)
    RUN(leaf_one_five)
    RUN(caller_five)
    RUN(caller_one_five)
  }
  printf("wrong %ld\n", wrong);
  return 0;
}
