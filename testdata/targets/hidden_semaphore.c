// A library whose semaphore is hidden by a symbol of the same name in the program that opens it (-DUSER, with -rdynamic). The program opens the library whose
// path is the argument, and hits its probe once for each line, if the semaphore that the library tests is not 0. Answers each line.
#include <stdio.h>

unsigned short hidden_hit_semaphore __attribute__((section(".probes")));

#ifdef USER
#include <dlfcn.h>

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
    void (*fire)(long) = 0;
    if (library)
        *(void **)&fire = dlsym(library, "fire");
    if (!fire)
        return 1;
    for (long line = 0; getchar() != EOF;)
        if (fire(line++), puts("done"), fflush(stdout))
            return 1;
}
#else
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

void fire(long n) {
    if (*(volatile unsigned short *)&hidden_hit_semaphore)
        STAP_PROBE1(hidden, hit, n);
}
#endif
