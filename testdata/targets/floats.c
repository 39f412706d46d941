/* Hits a probe whose arguments are floating-point numbers: in registers, and in memory. Prints nothing. */
#include <float.h>
#include <math.h>
#include <sys/sdt.h>

static __attribute__((noinline)) void take(volatile double *wide, volatile float *narrow)
{
    __asm__ volatile("" : : "r"(wide), "r"(narrow) : "memory");
}

/* It calls another function, so its variables are above the stack pointer, where copies of the stack have them. */
static __attribute__((noinline)) void hit(double wide, float narrow, int count)
{
    volatile double kept = wide;
    volatile float short_kept = narrow;
    DTRACE_PROBE5(floats, hit, wide, narrow, kept, short_kept, count);
    take(&kept, &short_kept);
}

int main(void)
{
    static const double numbers[] = {0.0, -0.0, 0.1, 1, 1.5, 2, 2.5, 3, -2.5, 1e300, INFINITY, -INFINITY, NAN, -NAN, DBL_MIN / 2};
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        hit(numbers[i], (float)numbers[i], i);
    return 0;
}
