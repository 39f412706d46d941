/* The register of the frame pointer has a number at each hit. */
#include <sys/sdt.h>

#ifdef __aarch64__
register unsigned long number asm("x29");
#else
register unsigned long number asm("rbp");
#endif

int main(void)
{
    number = 8;
    for (int i = 0; i < 8; i++)
        STAP_PROBE1(no_frames, hit, i);
    return 0;
}
