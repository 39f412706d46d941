// umask(2) of the C library with a probe, for LD_PRELOAD: a function that runtimes of many languages call.
#define _GNU_SOURCE
#include <sys/sdt.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

mode_t umask(mode_t mask) {
    DTRACE_PROBE1(umask, called, mask);
    return (mode_t)syscall(SYS_umask, mask);
}
