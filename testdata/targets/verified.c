// Code whose page the program gives up or replaces. Commands, a line each: fire N (N hits of both probes), drop (its page of the code becomes the file's),
// move (memory of no file takes the place of the page; no hits may follow), semaphore. Each answers a line.
#define _GNU_SOURCE
#define _SDT_HAS_SEMAPHORES 1
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

// probe!() hits without asking for the semaphore.
__extension__ volatile unsigned short verified_guarded_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short verified_hit_semaphore __attribute__((section(".probes")));

__attribute__((noinline, section(".apart"), aligned(65536))) static void fire(long n) {
    STAP_PROBE1(verified, hit, n);
    if (verified_guarded_semaphore)
        STAP_PROBE1(verified, guarded, n);
}

int main(void) {
    long size = sysconf(_SC_PAGESIZE);
    char *page = (char *)((uintptr_t)fire & ~(size - 1));
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "fire ", 5)) {
            for (long i = atol(line + 5); i > 0; i--)
                fire(i);
        } else if (!strcmp(line, "drop\n")) {
            if (madvise(page, size, MADV_DONTNEED))
                return 1;
        } else if (!strcmp(line, "move\n")) {
            char *copy = mmap(0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (copy == MAP_FAILED)
                return 1;
            memcpy(copy, page, size);
            if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, page) == MAP_FAILED)
                return 1;
        }
        printf("done %u\n", verified_guarded_semaphore);
        fflush(stdout);
    }
}
