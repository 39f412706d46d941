/* Hits PROVIDER:step as often as each number on standard input says; of a negative number a child does it. Prints `done` after each. */
#include <stdio.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void step(long number) { STAP_PROBE1(PROVIDER, step, number); }

static void hit(long count) {
  for (long number = 0; number < count; number++)
    step(number);
}

int main(void) {
  long count;
  while (scanf("%ld", &count) == 1) {
    if (count >= 0)
      hit(count);
    else if (fork())
      wait(0);
    else {
      hit(-count);
      _exit(0);
    }
    printf("done\n");
    fflush(stdout);
  }
  return 0;
}
