/* Stacks that are hard to follow. It keeps a list of the functions that it is in.
 *     moving KIND [DEPTH]
 * hits the probe `hit` in the function `hits`, twice each time, and prints `stack FUNCTION...` for each hit: its own functions, the innermost first.
 * Kinds: plain, below DEPTH frames of `deeper`, of which it prints one; vfork, in a child, and then in its parent; handler and other, in a
 * handler of a signal, on the stack that it interrupts and on another one; below, the same, where the other one is below the first; garbage, data
 * and again, with a return address that is no address of code, that is one of data, and that is the function's own; cyclic and lower, with a saved frame
 * pointer that is the frame's own address, and one that is below it.
 *     moving memfd KIND [DEPTH]
 * does it as a program that is in no directory, after the end of standard input. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone)) static
#define ENTER (entered[count++] = __func__)
#define LEAVE (count--)

static const char *volatile entered[64];
static volatile int count;
static volatile int sum;
static char another[1 << 16];
static const char *kind;

FUNCTION void said(void) {
  printf("stack");
  for (int at = count; at > 0; at--)
    printf(" %s", entered[at - 1]);
  printf("\n");
  fflush(stdout);
}

FUNCTION void hits(int value) {
  ENTER;
  for (int time = 0; time < 2; time++) {
    said();
    STAP_PROBE1(moving, hit, value);
  }
  sum += value;
  LEAVE;
}

FUNCTION int deeper(int left) {
  if (left > 0) {
    sum += deeper(left - 1);
    return left + sum;
  }
  ENTER;
  hits(left);
  LEAVE;
  return sum;
}

FUNCTION void vforks(void) {
  ENTER;
  pid_t child = vfork();
  if (child == 0) {
    hits(1);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  hits(2);
  LEAVE;
}

FUNCTION void handler(int number) {
  ENTER;
  hits(number);
  LEAVE;
}

FUNCTION void raises(void) {
  ENTER;
  raise(SIGUSR1);
  sum++;
  LEAVE;
}

FUNCTION void set_handler(void *stack, size_t size) {
  const stack_t on = {.ss_sp = stack, .ss_size = size};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  if (stack)
    sigaltstack(&on, NULL);
  sigaction(SIGUSR1, &action, NULL);
}

/* The other stack is a part of this one's. */
FUNCTION void below(void) {
  char stack[1 << 16];
  ENTER;
  set_handler(stack, sizeof stack);
  raises();
  memset(stack, sum, sizeof stack);
  sum += stack[sum & 0xff];
  LEAVE;
}

/* Writes over the saved frame pointer (0) or the return address (1). */
FUNCTION void spoils(int word, uintptr_t value) {
  volatile uintptr_t *frame = __builtin_frame_address(0);
  ENTER;
  const uintptr_t before = frame[word];
  frame[word] = value ? value : (uintptr_t)frame;
  hits(word);
  frame[word] = before;
  sum++;
  LEAVE;
}

static int is(const char *name) { return !strcmp(kind, name); }

FUNCTION void runs(int depth) {
  ENTER;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (is("plain"))
    sum += deeper(depth);
  else if (is("vfork"))
    vforks();
  else if (is("handler") || is("other")) {
    set_handler(another, is("other") ? sizeof another : 0);
    raises();
  } else if (is("below"))
    below();
  else if (is("garbage"))
    spoils(1, (uintptr_t)0x4141414141414141);
  else if (is("data"))
    spoils(1, (uintptr_t)another);
  else if (is("again"))
    spoils(1, (uintptr_t)spoils + 1);
  else if (is("cyclic"))
    spoils(0, 0);
  else if (is("lower"))
    spoils(0, here - (1 << 14));
  else
    abort();
  sum++;
  LEAVE;
}

static void run_from_memory(char **argv) {
  const int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const int copy = memfd_create("moving", MFD_CLOEXEC);
  while (sendfile(copy, own, NULL, 1 << 20) > 0)
    ;
  setenv("WAITS", "yes", 1);
  fexecve(copy, argv, environ);
  abort();
}

int main(int argc, char **argv) {
  char byte;
  while (getenv("WAITS") && read(0, &byte, 1) > 0)
    ;
  if (argc > 1 && !strcmp(argv[1], "memfd"))
    run_from_memory(argv + 1);
  kind = argc > 1 ? argv[1] : "plain";
  ENTER;
  runs(argc > 2 ? atoi(argv[2]) : 3);
  sum++;
  return 0;
}
