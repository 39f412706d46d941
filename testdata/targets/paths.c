/* Hits paths:hit below different functions (compile it with -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls), when it has read a line:
 *     paths COUNT CHILDREN
 *     paths tree DEPTH [WAYS]
 * In this process and in children that end before it: `left` and `right` hit COUNT and 2 * COUNT times through `shared`, and `alone` 3 * COUNT times. The
 * arguments are the number of the hit, and a string. It prints the number of hits of each path, `main;both;left;shared COUNT`, and `done`, and waits for
 * another line. With `tree` it hits once below each of WAYS ** DEPTH ways through DEPTH calls of `tree`, 2 if nothing is said, and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PROVIDER
#define PROVIDER paths
#endif

static volatile int sum;

__attribute__((noinline)) static void shared(long number, const char *text) {
  STAP_PROBE2(PROVIDER, hit, number, text);
  sum++;
}

__attribute__((noinline)) static void left(long number) {
  shared(number, "left");
  sum++;
}

__attribute__((noinline)) static void right(long number) {
  shared(number, "right");
  sum++;
}

__attribute__((noinline)) static void both(long count) {
  for (long i = 0; i < count; i++) {
    left(i);
    right(i);
    right(i);
  }
  sum++;
}

__attribute__((noinline)) static void alone(long number) {
  STAP_PROBE2(PROVIDER, hit, number, "alone");
  sum++;
}

__attribute__((noinline)) static void tree(int depth, int ways) {
  if (depth == 0)
    STAP_PROBE2(PROVIDER, hit, depth, "tree");
  else {
    tree(depth - 1, ways);
    sum++;
    if (ways > 1)
      tree(depth - 1, ways);
  }
  sum++;
}

__attribute__((noinline)) static void run(long count) {
  both(count);
  for (long i = 0; i < 3 * count; i++)
    alone(i);
  sum++;
}

int main(int argc, char **argv) {
  char line[16];
  long count = argc > 1 ? atol(argv[1]) : 10, children = argc > 2 ? atol(argv[2]) : 0;
  setvbuf(stdout, 0, _IOLBF, 0);
  if (!fgets(line, sizeof line, stdin))
    return 1;
  if (argc > 2 && !strcmp(argv[1], "tree")) {
    tree(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 2);
    return 0;
  }
  for (long i = 0; i < children; i++) {
    pid_t child = fork();
    if (child == 0) {
      run(count);
      _exit(0);
    }
    waitpid(child, 0, 0);
  }
  run(count);
  long all = count * (children + 1);
  printf("main;run;both;left;shared %ld\nmain;run;both;right;shared %ld\nmain;run;alone %ld\ndone\n", all, 2 * all, 3 * all);
  (void)!fgets(line, sizeof line, stdin);
  return 0;
}
