/* A program that lives on with its children under record:
 *     children COUNT
 * hits its probes, then starts COUNT children in each way there is (fork, vfork, with exec too, posix_spawn, clone with its own
 * memory, a grandchild; one that seccomp lets nothing but write and end, one that is traced, one that is traced instruction by instruction, one that a
 * thread of its own replaces by exec), each of which hits its probes, and itself hits them again each time. Prints `fire NAME VALUE` for each
 * hit, `died N` with the number of children that did not end as they should, and `wrong N` with that of wrong results.
 *     children hit VALUE
 * is a child: it hits each probe once with VALUE.
 * Probes: one_five is on a 1-byte nop with a 5-byte nop after it (libbpf's usdt.h), five on a 5-byte nop, one on sys/sdt.h's nop. */
#define _GNU_SOURCE
#define PROVIDER "children"
#include "nops.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void called(void) { __asm__ volatile(""); }

/* Twice its argument, in a function that calls another. */
#define CALLER(name, nops) \
  __attribute__((naked, noinline)) static uint64_t hit_##name(uint64_t value) { \
    __asm__("push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi, %rbx\n" \
            NOTE_BEFORE(#name, "8@%rbx", nops) \
            "call called\nlea (%rbx,%rbx), %rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"); \
  }

CALLER(one_five, "nop\n" NOP5)
CALLER(five, NOP5)

__attribute__((noinline)) static uint64_t hit_one(uint64_t value) {
  STAP_PROBE1(children, one, value);
  return 2 * value;
}

static long wrong, died;

/* In one write, because parents and children share the output. */
static void fire(const char *name, uint64_t value) {
  char line[64];
  int length = snprintf(line, sizeof line, "fire %s %lu\n", name, (unsigned long)value);
  if (write(1, line, length) != length)
    abort();
}

static int hit(uint64_t value) {
  int bad = 0;
#define RUN(name) \
  fire(#name, value); \
  bad += hit_##name(value) != 2 * value;
  RUN(one_five)
  RUN(five)
  RUN(one)
  wrong += bad;
  return bad;
}

static void wait_for(pid_t child) {
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
    died++;
}

/* Lets a child that asked to be traced run to its end; nothing but the stop that it begins with may come from it. */
static void trace(pid_t child, int request) {
  int status;
  for (int stops = 0; waitpid(child, &status, 0) == child && WIFSTOPPED(status); stops++) {
    /* A step ends with SIGTRAP. */
    int expected = stops && request == PTRACE_SINGLESTEP ? SIGTRAP : SIGSTOP;
    if (WSTOPSIG(status) != expected || (stops && request == PTRACE_CONT)) {
      died++;
      kill(child, SIGKILL);
    }
    ptrace(request, child, 0, 0);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status))
    died++;
}

static pid_t traced(uint64_t value) {
  pid_t child = fork();
  if (!child) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    _exit(hit(value));
  }
  return child;
}

static void *execute(void *again) {
  execv("/proc/self/exe", again);
  _exit(127);
}

extern char **environ;

int main(int argc, char **argv) {
  if (argc > 2 && !strcmp(argv[1], "hit"))
    return hit(strtoul(argv[2], 0, 10));
  long count = argc > 1 ? atol(argv[1]) : 1;
  uint64_t value = 1;
  hit(value++);
  for (long i = 0; i < count; i++) {
    char text[24];
    char *again[] = {argv[0], "hit", text, 0};
    pid_t child = fork();
    if (!child)
      _exit(hit(value));
    wait_for(child);
    hit(++value);
    value++;

    snprintf(text, sizeof text, "%lu", (unsigned long)value);
    child = vfork();
    if (!child) {
      execv("/proc/self/exe", again);
      _exit(127);
    }
    wait_for(child);
    hit(++value);
    value++;

    snprintf(text, sizeof text, "%lu", (unsigned long)value);
    if (posix_spawn(&child, "/proc/self/exe", 0, 0, again, environ))
      child = -1;
    wait_for(child);
    value++;

    child = syscall(SYS_clone, SIGCHLD | CLONE_FS | CLONE_FILES, 0, 0, 0, 0);
    if (!child)
      _exit(hit(value));
    wait_for(child);
    value++;

    child = fork();
    if (!child) {
      pid_t grandchild = fork();
      if (!grandchild)
        _exit(hit(value));
      wait_for(grandchild);
      _exit(died != 0);
    }
    wait_for(child);
    value++;

    /* It shares our memory until it ends, and counts there. */
    child = vfork();
    if (!child)
      _exit(hit(value));
    wait_for(child);
    value++;

    child = fork();
    if (!child) {
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
      syscall(SYS_exit, hit(value));
    }
    wait_for(child);
    value++;

    trace(traced(value++), PTRACE_CONT);
    trace(traced(value++), PTRACE_SINGLESTEP);

    snprintf(text, sizeof text, "%lu", (unsigned long)value);
    child = fork();
    if (!child) {
      pthread_t thread;
      pthread_create(&thread, 0, execute, again);
      for (;;)
        pause();
    }
    wait_for(child);
    value++;
    hit(value++);
  }
  printf("died %ld\nwrong %ld\n", died, wrong);
  return 0;
}
