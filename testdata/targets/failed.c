/* Spans one after the other, the second of which has no end, as that of a statement that fails. Prints nothing. */
#include <sys/sdt.h>
#include <unistd.h>

int main(void)
{
    for (int i = 0; i < 4; i++) {
        DTRACE_PROBE1(failed, query__start, i);
        usleep(1000);
        if (i != 1)
            DTRACE_PROBE1(failed, query__done, i);
    }
    usleep(100000);
    return 0;
}
