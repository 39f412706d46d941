/* Names and strings with terminal escapes, control characters and right-to-left overrides, as a hostile program has them.
 * One site is a nop, one is not. */
#include <sys/prctl.h>

static const char text[] = "t\033[2J\033]0;owned\007\302\2331m\342\200\256\r\nusdtrec: ok";

#define NOTE(label, name)                                                                                  \
    ".pushsection .note.stapsdt, \"\", \"note\"\n"                                                         \
    ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                                                          \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                                            \
    "993: .8byte " label ", _.stapsdt.base, 0\n"                                                           \
    ".asciz \"ev\\033[31ml\\nusdtrec: ok\"\n.asciz \"" name "\"\n.asciz \"8@%%rax\"\n"                     \
    "994: .balign 4\n.popsection\n"                                                                        \
    ".ifndef _.stapsdt.base\n"                                                                             \
    ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                            \
    ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"                             \
    ".size _.stapsdt.base, 1\n.popsection\n.endif\n"

int main(void) {
    prctl(PR_SET_NAME, "c\033[1m\007\nusdtrec");
    for (int i = 0; i < 3; i++) {
        __asm__ volatile("990: nop\n" NOTE("990b", "go\\007\\302\\2331m\\342\\200\\256") : : "a"(text));
        __asm__ volatile("990: xorl %%ecx, %%ecx\n" NOTE("990b", "no\\033]0;owned\\007\\nusdtrec: ok") : : "a"(text) : "rcx");
    }
    return 0;
}
