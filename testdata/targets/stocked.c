/* For stock perf, which records it by tracefs: values of narrow sizes, and a function that is given a string.
 *     stocked N     N times
 *     stocked       N times for each line with an N on standard input, then prints `done`
 * A line is `fire step SHORT BYTE LONG`, or `fire tell NUMBER HIT`. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

__attribute__((noinline)) static void step(short down, unsigned char up, long wide) {
  STAP_PROBE3(stocked, step, down, up, wide);
}

__attribute__((noinline)) void tell(const char *text, int number) {
  __asm__ volatile("" : : "r"(text), "r"(number) : "memory");
}

static void go(int count) {
  static int at;
  for (int i = 0; i < count; i++, at++) {
    char text[32];
    snprintf(text, sizeof text, at % 3 ? "text %d" : "\"quoted\"\n%d", at % 7);
    step((short)-at, (unsigned char)(200 + at), (long)at << 32);
    printf("fire step %d %d %ld\n", (short)-at, (unsigned char)(200 + at), (long)at << 32);
    tell(text, -at);
    printf("fire tell %d %d\n", -at, at);
  }
}

int main(int argc, char **argv) {
  char line[32];
  if (argc > 1) {
    go(atoi(argv[1]));
    return 0;
  }
  while (fgets(line, sizeof line, stdin)) {
    go(atoi(line));
    puts("done");
    fflush(stdout);
  }
  return 0;
}
