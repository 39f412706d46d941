/* Hits a probe with strings and numbers that it is told. It reads lines from standard input and prints `done` for each:
 *     hit COUNT TEXT        COUNT hits of keys:text with TEXT, which may have any byte but a newline
 *     spread COUNT KEYS     COUNT hits of keys:number, the number of the hit modulo KEYS, and the number of the hit
 *     load SECONDS KEYS     the same for so long; it prints `hits COUNT` before
 *     slow MICROSECONDS     a pause of so long between any two hits of `load` from now on */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void text(const char *text) { STAP_PROBE1(keys, text, text); }

__attribute__((noinline)) static void number(long key, long number) { STAP_PROBE2(keys, number, key, number); }

static void load(double seconds, long keys, useconds_t pause) {
  struct timespec start, now;
  long hits = 0;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    for (int i = 0; i < 64; i++, hits++) {
      number(hits % keys, hits);
      if (pause)
        usleep(pause);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - start.tv_sec) + (now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
  printf("hits %ld\n", hits);
}

int main(void) {
  char line[8192];
  useconds_t pause = 0;
  setvbuf(stdout, 0, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin)) {
    char *words[3] = {line, "", ""};
    line[strcspn(line, "\n")] = 0;
    for (int i = 1; i < 3; i++) {
      char *blank = strchr(words[i - 1], ' ');
      if (!blank)
        break;
      *blank = 0;
      words[i] = blank + 1;
    }
    long keys = atol(words[2]) > 0 ? atol(words[2]) : 1;
    if (!strcmp(line, "hit"))
      for (long i = 0; i < atol(words[1]); i++)
        text(words[2]);
    else if (!strcmp(line, "spread"))
      for (long i = 0; i < atol(words[1]); i++)
        number(i % keys, i);
    else if (!strcmp(line, "load"))
      load(atof(words[1]), keys, pause);
    else if (!strcmp(line, "slow"))
      pause = (useconds_t)atol(words[1]);
    puts("done");
  }
  return 0;
}
