/* Probes whose arguments are variables of the file, of a function and of another file. Prints what it hands over. */
#include <stdio.h>
#include <sys/sdt.h>

enum state { IDLE, BUSY = 3 };
extern int level;
extern const char *last;
void serve(const char *text);

static enum state state;
static long served;
/* A member is no variable. */
static struct {
    long head, tail;
} queue;

static __attribute__((noinline)) void step(void)
{
    queue.tail += 2;
    state = state == BUSY ? IDLE : BUSY;
    served -= 50000;
}

static __attribute__((noinline)) void note(void)
{
    static unsigned short calls = 41;
    DTRACE_PROBE6(globals, note, state, served, last, level, calls, queue.tail);
    printf("%d %ld %s %d %d %ld\n", state, served, last, level, calls, queue.tail);
    calls++;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        serve(argv[i]);
        step();
        note();
    }
    return 0;
}
