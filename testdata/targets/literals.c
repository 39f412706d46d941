/* Hits a probe with the addresses of data that the program itself never touches: a literal, a short one, a variable that it could write,
 * and a table that the dynamic linker writes. With FIXED, where the linker puts the section `.fixed`, another one with that constant. Prints
 * nothing. */
#include <stdlib.h>
#include <sys/sdt.h>

#ifndef WORD
#define WORD "a literal"
#endif

static char writable[1 << 16] = "it may be written";
static const char *const table[] = {"zero", "one", "two", "three"};

#ifdef FIXED
__attribute__((section(".fixed"), used)) static const char fixed[] = "a fixed one";
#endif

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 3;
    for (int i = 0; i < count; i++) {
        const char *literal = WORD, *little = "ab";
        const void *data = writable, *linked = table;
        /* In registers, so that a program at a fixed address has no constants. */
        __asm__ volatile("" : "+r"(literal), "+r"(little), "+r"(data), "+r"(linked));
        DTRACE_PROBE5(literals, hit, literal, little, data, linked, i);
#ifdef FIXED
        DTRACE_PROBE1(literals, fixed, (const char *)FIXED);
#endif
    }
    return 0;
}
