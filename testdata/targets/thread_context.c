/* OpenTelemetry's thread context ("OTEP 4947"): a thread-local pointer to a record with the ids of the request.
 *
 * Alone it is a program that has the variable. With -DLIBRARY it is a library that has it, with -DLINKED a program that is linked with that library,
 * and with -DLOADED one that opens it. The program reads commands from standard input and prints `done` after each:
 *
 *     load PATH     opens the library
 *     set SEED      a request with ids made of the seed
 *     clear         no request: a null pointer
 *     zero          no request: ids of zeros
 *     invalid       a record that is not valid
 *     unreadable    a pointer to nothing
 *     hit N         N hits; for each, `hit COUNTER IDS`, or the last command that removed the ids
 *     work          hits the probes work__start and work__done
 *     thread SEED   another thread hits before it has a request (`none`), and with one of the seed
 *     fork N        a child process hits N times
 *     exec N        a child process executes this program anew, which hits N times (`none`) */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

struct record {
  uint8_t trace_id[16], span_id[8], valid, trace_flags;
  uint16_t attrs_data_size;
};

void set_context(struct record *);

#ifndef VISIBILITY
#define VISIBILITY "default"
#endif

#if !defined LINKED && !defined LOADED
/* Variables before it: it is not at the start of its block. */
#ifndef BEFORE
#define BEFORE 3
#endif
__thread long before[BEFORE] = {1, 2, 3};
__attribute__((visibility(VISIBILITY))) __thread struct record *otel_thread_ctx_v1;

void set_context(struct record *record) {
  ((volatile long *)before)[0]++;
  *(struct record *volatile *)&otel_thread_ctx_v1 = record;
}
#endif

#ifndef LIBRARY
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LOADED
static void (*loaded)(struct record *);

void set_context(struct record *record) {
  if (loaded)
    loaded(record);
}
#endif

static __thread struct record own;
static __thread const char *state = "none";
static int counter;
static char *program;

__attribute__((noinline)) static void hit(void) {
  STAP_PROBE1(context, hit, counter);
  printf("hit %d ", counter++);
  if (state) {
    printf("%s\n", state);
    return;
  }
  for (int i = 0; i < 16; i++)
    printf("%02x", own.trace_id[i]);
  printf(" ");
  for (int i = 0; i < 8; i++)
    printf("%02x", own.span_id[i]);
  printf("\n");
}

static void hits(long count) {
  for (long i = 0; i < count; i++)
    hit();
}

static void set(long seed) {
  own.valid = 0;
  for (int i = 0; i < 16; i++)
    own.trace_id[i] = (uint8_t)(seed * 31 + i * 7 + 1);
  for (int i = 0; i < 8; i++)
    own.span_id[i] = (uint8_t)(seed * 17 + i * 5 + 2);
  own.valid = 1;
  set_context(&own);
  state = 0;
}

static void *work(void *seed) {
  hit();
  set((long)seed);
  hit();
  return 0;
}

static void in_child(long count, int execute) {
  char digits[2][16];
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    snprintf(digits[0], sizeof digits[0], "%ld", count);
    snprintf(digits[1], sizeof digits[1], "%d", counter);
    if (execute)
      execl(program, program, digits[0], digits[1], (char *)0);
    hits(count);
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, 0, 0);
  counter += (int)count;
}

static void obey(const char *word, const char *argument) {
  long number = atol(argument);
  pthread_t thread;
  if (!strcmp(word, "set"))
    set(number);
  else if (!strcmp(word, "clear")) {
    set_context(0);
    state = "none";
  } else if (!strcmp(word, "zero")) {
    memset(&own, 0, sizeof own);
    own.valid = 1;
    set_context(&own);
    state = "none";
  } else if (!strcmp(word, "invalid")) {
    own.valid = 0;
    set_context(&own);
    state = "invalid";
  } else if (!strcmp(word, "unreadable")) {
    void *page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set_context(page);
    state = "unreadable";
  } else if (!strcmp(word, "hit"))
    hits(number);
  else if (!strcmp(word, "work")) {
    STAP_PROBE1(context, work__start, number);
    STAP_PROBE1(context, work__done, number);
  } else if (!strcmp(word, "thread")) {
    pthread_create(&thread, 0, work, (void *)number);
    pthread_join(thread, 0);
  } else if (!strcmp(word, "fork"))
    in_child(number, 0);
  else if (!strcmp(word, "exec"))
    in_child(number, 1);
#ifdef LOADED
  else if (!strcmp(word, "load")) {
    void *library = dlopen(argument, RTLD_NOW);
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
    *(void **)&loaded = dlsym(library, "set_context");
  }
#endif
}

int main(int argc, char **argv) {
  char line[512], word[32], argument[480];
  program = argv[0];
  setvbuf(stdout, 0, _IOLBF, 0);
  if (argc > 2) {
    counter = atoi(argv[2]);
    hits(atol(argv[1]));
    return 0;
  }
  while (fgets(line, sizeof line, stdin)) {
    argument[0] = 0;
    if (sscanf(line, "%31s %479s", word, argument) < 1)
      continue;
    obey(word, argument);
    printf("done\n");
  }
  return 0;
}
#endif
