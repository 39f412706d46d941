/* One thread that serves several requests at once, as an event loop does.
 *     event_loop ROUNDS
 * `request__start` has the id, an address, and the slot; `request__done` the id and a status. Prints for each request: ID BEGIN END, the rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

#define SLOTS 8

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    int open[SLOTS] = {0}, left[SLOTS], begun[SLOTS], id = 0;
    static const char *urls[] = {"/a", "/b", "/c"};
    for (int round = 0; round < rounds; round++)
        for (int slot = 0; slot < SLOTS; slot++) {
            if (!open[slot] && round < rounds - 50) {
                open[slot] = ++id;
                left[slot] = 1 + id % 3 * 10;
                begun[slot] = round;
                DTRACE_PROBE3(event_loop, request__start, id, urls[id % 3], slot);
            } else if (open[slot] && --left[slot] == 0) {
                DTRACE_PROBE2(event_loop, request__done, open[slot], 200);
                printf("%d %d %d\n", open[slot], begun[slot], round);
                open[slot] = 0;
            }
        }
    return 0;
}
