/* Calls at random, of threads that change the CPU: nested, recursive, left by exceptions and by longjmp; and items with strings and numbers.
 *     calls SEED COUNT THREADS ITEMS
 * function__entry and function__return have the function, the call's id, and its depth or what it returned.
 * Each thread calls COUNT times from outside. Prints `call ID FUNCTION RETURNED INNER OUTER` of each call: what is inside of its span and what the
 * span is inside of, ns of CLOCK_MONOTONIC; 0 0 and RETURNED 0 of a call that was left otherwise. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

/* Calls of a thread; there are no more. */
#define MOST 20000

struct call {
    int function, returned;
    long before_entry, after_entry, before_return, after_return;
};

struct thread {
    unsigned long random;
    long first, calls;
    jmp_buf *target;
};

static const char *names[] = {"main", "parse", "read", "write", "lookup", "insert", "remove", "visit", "größe", "operator()", "a b", "\"x\","};
static long count, items;
static struct call *calls;

static long now()
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static unsigned below(struct thread *t, unsigned end)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (t->random >> 11) % end;
}

static void change_cpu(struct thread *t)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(below(t, sysconf(_SC_NPROCESSORS_ONLN)), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void call(struct thread *t, int depth);

/* Where exceptions and longjmp arrive. */
__attribute__((noinline)) static void guarded(struct thread *t, int depth)
{
    jmp_buf here, *outer = t->target;
    t->target = &here;
    if (!setjmp(here)) {
        try {
            call(t, depth);
        } catch (int) {
        }
    }
    t->target = outer;
}

__attribute__((noinline)) static void call(struct thread *t, int depth)
{
    if (t->calls == MOST)
        return;
    long id = t->first + t->calls++;
    struct call *c = &calls[id];
    c->function = below(t, sizeof names / sizeof *names);
    const char *name = names[c->function];
    c->before_entry = now();
    DTRACE_PROBE3(calls, function__entry, name, id, depth);
    c->after_entry = now();
    for (unsigned i = below(t, 4); depth < 7 && i > 0; i--)
        below(t, 3) ? call(t, depth + 1) : guarded(t, depth + 1);
    if (below(t, 16) == 0)
        change_cpu(t);
    if (below(t, 8) == 0)
        throw depth;
    if (below(t, 8) == 0)
        longjmp(*t->target, 1);
    int status = below(t, 5);
    c->before_return = now();
    DTRACE_PROBE3(calls, function__return, name, id, status);
    c->after_return = now();
    c->returned = 1;
}

static void *work(void *argument)
{
    struct thread *t = (struct thread *)argument;
    char text[64];
    for (long i = 0; i < count; i++)
        guarded(t, 0);
    for (long i = 0; i < items; i++) {
        /* Strings that come once, as many groups with equal figures; then a few frequent ones. */
        unsigned item = i < items * 2 / 5 ? t->first + i : below(t, 8);
        snprintf(text, sizeof text, "%c%c/item %u", 'a' + item / 26 % 26, 'a' + item % 26, item);
        DTRACE_PROBE3(calls, item, text, (long)below(t, 100000) - 50000, (int)(item % 100));
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    unsigned long seed = atol(argv[1]);
    count = atol(argv[2]);
    long others = atol(argv[3]);
    others = others < 16 ? others : 16;
    items = atol(argv[4]);
    calls = (struct call *)calloc(MOST * others, sizeof *calls);
    /* The strings become resident: else one is missing at times, because the threads' stacks are being mapped. */
    for (const char *name : names)
        *(volatile const char *)name;
    pthread_t ids[16];
    struct thread threads[16];
    for (long i = 0; i < others; i++) {
        threads[i] = {(seed + i + 1) * 0x9e3779b97f4a7c15UL, i * MOST, 0, 0};
        pthread_create(&ids[i], 0, work, &threads[i]);
    }
    for (long i = 0; i < others; i++)
        pthread_join(ids[i], 0);
    for (long i = 0; i < others; i++)
        for (long id = threads[i].first; id < threads[i].first + threads[i].calls; id++) {
            struct call *c = &calls[id];
            long inner = c->returned ? c->before_return - c->after_entry : 0;
            long outer = c->returned ? c->after_return - c->before_entry : 0;
            printf("call %ld %s %d %ld %ld\n", id, names[c->function], c->returned, inner, outer);
        }
    return 0;
}
