/* A span that is hot, a probe that is hot, and one that is rare.
 * Prints `pid N`, then obeys lines of standard input:
 *     run MS     for so many milliseconds: busy:work__start and busy:work__done around a little work, busy:hot, and each millisecond busy:rare
 *                with a number and a string. Prints `ran ROUNDS CHECKED RARE`: the rounds, those in which busy:work__start was enabled, and the
 *                number of rare hits so far
 *     fork MS    the same in a child, which prints `child ROUNDS CHECKED RARE` (its rare hits have numbers from 1,000,000 on)
 *     look       prints `semaphores` with those of the four probes
 *     quit       ends */
#define _GNU_SOURCE
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PROVIDER
#define PROVIDER busy
#endif
#define JOIN_(provider, name) provider##_##name##_semaphore
#define JOIN(provider, name) JOIN_(provider, name)
#define SEMAPHORE(name) JOIN(PROVIDER, name)

__extension__ volatile unsigned short SEMAPHORE(work__start) __attribute__((section(".probes")));
__extension__ volatile unsigned short SEMAPHORE(work__done) __attribute__((section(".probes")));
__extension__ volatile unsigned short SEMAPHORE(hot) __attribute__((section(".probes")));
__extension__ volatile unsigned short SEMAPHORE(rare) __attribute__((section(".probes")));

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static char text[32];
static long rare;

__attribute__((noinline)) static void run(const char *word, long ms) {
  long rounds = 0, checked = 0, end = now() + ms * 1000000L, next = now();
  for (long time = now(); time < end; time = now()) {
    rounds++;
    checked += SEMAPHORE(work__start) != 0;
    STAP_PROBE1(PROVIDER, work__start, rounds);
    for (volatile int i = 0; i < 50; i++)
      ;
    STAP_PROBE1(PROVIDER, work__done, rounds);
    STAP_PROBE1(PROVIDER, hot, rounds);
    if (time >= next) {
      rare++;
      snprintf(text, sizeof text, "text %ld", rare);
      STAP_PROBE2(PROVIDER, rare, rare, text);
      next += 1000000;
    }
  }
  printf("%s %ld %ld %ld\n", word, rounds, checked, rare);
  fflush(stdout);
}

int main(void) {
  char line[64];
  printf("pid %d\n", getpid());
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    long ms = strchr(line, ' ') ? atol(strchr(line, ' ')) : 0;
    if (!strncmp(line, "run", 3))
      run("ran", ms);
    else if (!strncmp(line, "fork", 4)) {
      pid_t child = fork();
      if (!child) {
        rare = 1000000;
        run("child", ms);
        _exit(0);
      }
      waitpid(child, NULL, 0);
    } else if (!strncmp(line, "look", 4)) {
      printf("semaphores %d %d %d %d\n", SEMAPHORE(work__start), SEMAPHORE(work__done), SEMAPHORE(hot), SEMAPHORE(rare));
      fflush(stdout);
    } else
      break;
  }
  return 0;
}
