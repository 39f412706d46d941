/* Arguments in places that compilers choose for arrays of threads, tables, wide integers and structures.
 *
 * Prints a line `fire NAME VALUE…` for each hit, as shapes.h describes. Built with -O2. */
#include <pthread.h>
#include <stdio.h>
#include <sys/sdt.h>

struct triple {
    long first, second, third;
};

static __thread int mine[8] = { 10, 11, 12, 13, 14, 15, 16, 17 };
int table[16];

__attribute__((noinline)) static void element(long i)
{
    DTRACE_PROBE1(places, own, mine[i]);
    printf("fire own %d\n", mine[i]);
    DTRACE_PROBE1(places, entry, table[i + 2]);
    printf("fire entry %d\n", table[i + 2]);
    mine[i] += 100;
}

#ifdef __x86_64__
__int128 whole;

__attribute__((noinline)) static void wide(struct triple triple, __int128 given)
{
    DTRACE_PROBE3(places, wide, triple, given, whole);
    printf("fire wide %ld %ld %ld %llu %llu %llu\n", triple.first, triple.second, triple.third,
           (unsigned long long)given, (unsigned long long)whole, (unsigned long long)(whole >> 64));
}
#endif

/* An argument that is called like a field that perf adds to all events. */
__attribute__((noinline)) static void named(int common_pid)
{
    DTRACE_PROBE1(places, named, common_pid);
    printf("fire named %d\n", common_pid);
}

static void *run(void *unused)
{
    (void)unused;
    for (long i = 0; i < 8; i++)
        element(i);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 16; i++)
        table[i] = 1000 * i + 7;
    element(3);
    fflush(stdout);
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    element(3);
#ifdef __x86_64__
    for (long i = 1; i < 4; i++) {
        struct triple triple = { i, -i, i * 1000000007L };
        whole = ((__int128)(i + 40) << 64) | (unsigned long)(i * 3);
        wide(triple, ((__int128)i << 70) | (unsigned long)(i + 9));
    }
#endif
    named(-123456);
    return 0;
}
