// Calls that do not return, and a frame pointer that is 0 by chance: what callers have at their return addresses is another function, or nothing.
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>

__attribute__((noinline)) void hit(int number) {
    // Calls before and after it: the probe is within the frame.
    getpid();
    DTRACE_PROBE1(returns, hit, number);
    getpid();
    __asm__ volatile("" : : "r"(number));
}

__attribute__((noinline, noreturn)) void leave(int number) {
    hit(number);
    _exit(0);
}

// The call is the last instruction of each: the next function follows it.
__attribute__((noinline, noreturn)) void inner(int number) { leave(number); }
__attribute__((noinline)) void after_inner(void) { __asm__ volatile("nop"); }
__attribute__((noinline, noreturn)) void outer(int number) { inner(number); }
__attribute__((noinline)) void after_outer(void) { __asm__ volatile("nop"); }

#ifdef __x86_64__
// Calls with a frame pointer of 0.
__attribute__((noinline)) void without(int number) {
    void *kept;
    __asm__ volatile("mov %%rbp, %0\n xor %%ebp, %%ebp" : "=r"(kept));
    hit(number);
    __asm__ volatile("mov %0, %%rbp" : : "r"(kept));
}
#else
void without(int number) { hit(number); }
#endif

int main(int argc, char **argv) {
    after_inner();
    after_outer();
    without(1);
    outer(argc);
}
