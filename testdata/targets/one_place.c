/* Probes at one instruction, as linkers make them of functions whose code is equal, and notes of one name with other arguments:
 * `a` twice with the same operands, `b` with others, `c` with one argument and with two, `d` with different constants.
 *     one_place HITS
 * The frame pointer leads to a frame whose return address is that of no code, another one at each hit. */
#include <stdlib.h>

#define NOTE(name, args)                                                                                                                  \
  ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 92f-91f,94f-93f,3\n91: .asciz \"stapsdt\"\n92: .balign 4\n93: .8byte 990b\n"      \
  ".8byte 0\n.8byte 0\n.asciz \"one_place\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n94: .balign 4\n.popsection\n"

__attribute__((noinline)) static void hit(long number, long other) {
  volatile unsigned long frame[2] = {0x1235 + 8 * (unsigned long)number, 0x10000000 + 16 * (unsigned long)number};
  __asm__ volatile("push %%rbp\nmov %0, %%rbp\n990: nop\npop %%rbp\n" NOTE("a", "-4@%%edi") NOTE("a", "-4@%%edi") NOTE("b", "8@%%rsi")
                       NOTE("c", "-4@%%edi") NOTE("c", "-4@%%edi 8@%%rsi") NOTE("d", "-4@$7") NOTE("d", "-4@$8")
                   :
                   : "r"(frame), "D"(number), "S"(other)
                   : "memory");
}

int main(int argc, char **argv) {
  for (int number = 0; number < (argc > 1 ? atoi(argv[1]) : 1); number++)
    hit(number, 100 + number);
  return 0;
}
