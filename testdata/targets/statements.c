/* Statements of SQL as fast as they come, each a span whose begin has the statement.
 *     statements COUNT
 * The statements are those of pgbench: three kinds, with numbers that differ. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

/* Numbers by a linear congruence, the same in each run. */
static unsigned long state = 42;

static unsigned below(unsigned limit)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % limit;
}

__attribute__((noinline)) static void execute(long id, const char *text, unsigned rows)
{
    DTRACE_PROBE2(statements, query__start, id, text);
    DTRACE_PROBE2(statements, query__done, id, rows);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000;
    char text[128];
    for (long id = 0; id < count; id++) {
        switch (id % 3) {
        case 0:
            snprintf(text, sizeof text, "UPDATE pgbench_accounts SET abalance = abalance + %d WHERE aid = %u;",
                     (int)below(10001) - 5000, below(100000));
            break;
        case 1:
            snprintf(text, sizeof text, "SELECT abalance FROM pgbench_accounts WHERE aid = %u;", below(100000));
            break;
        default:
            snprintf(text, sizeof text, "UPDATE pgbench_branches SET bbalance = bbalance + %d WHERE bid = %u;",
                     (int)below(10001) - 5000, below(10));
        }
        execute(id, text, below(3));
    }
    printf("%ld\n", count);
    return 0;
}
