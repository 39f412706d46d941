/* A program that waits: it reads commands from standard input, fires, prints what it passed and then `done`.
 *
 *     fire N        N hits of ticker:tick in the main thread
 *     guarded N     N times ticker:guarded, only if its semaphore is set (else it prints nothing)
 *     semaphores    prints `semaphores TICK GUARDED`
 *     thread N      a new thread, named `worker`, hits N times and ends
 *     keep          starts a thread that waits; prints `thread TID`
 *     kept N        that thread hits N times
 *     fork N        a child process hits N times and ends
 *     exec N        a child process executes this program anew, which hits N times
 *     sleep MS      does nothing for so long
 *     kill          dies by SIGKILL right after one hit
 *     leave         the main thread ends, and another one goes on
 *     unprotect     makes the program's data writable that the loader has made read-only (PT_GNU_RELRO)
 * With a number as argument it hits that often and ends. A line is `fire NAME COUNTER TID TEXT_ADDRESS`. */
#define _GNU_SOURCE
#define _SDT_HAS_SEMAPHORES 1
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__extension__ volatile unsigned short ticker_tick_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short ticker_guarded_semaphore __attribute__((section(".probes")));

static const char text[] = "ticker text";
static char *program;

static void obey(const char *word, long count);

static int thread_id(void) { return (int)syscall(SYS_gettid); }

__attribute__((noinline)) static void tick(int counter, int tid) { STAP_PROBE3(ticker, tick, counter, tid, text); }

static void *fire(void *argument) {
  int count = (int)(long)argument, tid = thread_id();
  for (int i = 0; i < count; i++) {
    tick(i, tid);
    printf("fire tick %d %d %lu\n", i, tid, (unsigned long)text);
  }
  return 0;
}

static void guarded(int count) {
  for (int i = 0; i < count; i++) {
    if (!ticker_guarded_semaphore)
      continue;
    STAP_PROBE1(ticker, guarded, i * 3);
    printf("fire guarded %d\n", i * 3);
  }
}

static void *work(void *argument) {
  pthread_setname_np(pthread_self(), "worker");
  return fire(argument);
}

static void in_thread(long count) {
  pthread_t thread;
  pthread_create(&thread, 0, work, (void *)count);
  pthread_join(thread, 0);
}

static void in_child(long count, int execute) {
  char digits[16];
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    snprintf(digits, sizeof digits, "%ld", count);
    if (execute)
      execl(program, "anew", digits, (char *)0);
    fire((void *)count);
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, 0, 0);
}

/* The waiting thread: a pipe tells it how often to hit, another one when it is done. */
static int ask[2], answer[2];

static void *wait_and_fire(void *unused) {
  long count = thread_id();
  (void)unused;
  do {
    if (write(answer[1], &count, sizeof count) != sizeof count)
      return 0;
    if (read(ask[0], &count, sizeof count) != sizeof count)
      return 0;
    fire((void *)count);
  } while (1);
}

static void keep(void) {
  pthread_t thread;
  long tid = 0;
  if (pipe(ask) || pipe(answer))
    exit(1);
  pthread_create(&thread, 0, wait_and_fire, 0);
  if (read(answer[0], &tid, sizeof tid) == sizeof tid)
    printf("thread %ld\n", tid);
}

static void kept(long count) {
  if (write(ask[1], &count, sizeof count) == sizeof count && read(answer[0], &count, sizeof count) == sizeof count)
    return;
  exit(1);
}

static int unprotect_object(struct dl_phdr_info *object, size_t size, void *unused) {
  unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
  (void)size;
  (void)unused;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[i];
    unsigned long start = (object->dlpi_addr + header->p_vaddr) & -page;
    unsigned long end = object->dlpi_addr + header->p_vaddr + header->p_memsz;
    if (header->p_type == PT_GNU_RELRO && mprotect((void *)start, end - start, PROT_READ | PROT_WRITE))
      exit(1);
  }
  /* The first object is the program. */
  return 1;
}

static void *listen(void *second) {
  char line[64], word[32], path[64];
  if (second) {
    /* Until it has ended. */
    snprintf(path, sizeof path, "/proc/%d/exe", (int)getpid());
    while (readlink(path, line, sizeof line) > 0)
      usleep(1000);
    printf("done\n");
  }
  while (fgets(line, sizeof line, stdin)) {
    long count = 0;
    if (sscanf(line, "%31s %ld", word, &count) < 1)
      continue;
    obey(word, count);
    printf("done\n");
  }
  exit(0);
}

static void leave(void) {
  pthread_t thread;
  pthread_create(&thread, 0, listen, program);
  pthread_exit(0);
}

static void obey(const char *word, long count) {
  if (!strcmp(word, "fire"))
    fire((void *)count);
  else if (!strcmp(word, "guarded"))
    guarded((int)count);
  else if (!strcmp(word, "semaphores"))
    printf("semaphores %d %d\n", ticker_tick_semaphore, ticker_guarded_semaphore);
  else if (!strcmp(word, "thread"))
    in_thread(count);
  else if (!strcmp(word, "keep"))
    keep();
  else if (!strcmp(word, "kept"))
    kept(count);
  else if (!strcmp(word, "fork"))
    in_child(count, 0);
  else if (!strcmp(word, "exec"))
    in_child(count, 1);
  else if (!strcmp(word, "sleep"))
    usleep((useconds_t)count * 1000);
  else if (!strcmp(word, "unprotect"))
    dl_iterate_phdr(unprotect_object, 0);
  else if (!strcmp(word, "leave"))
    leave();
  else if (!strcmp(word, "kill")) {
    fire((void *)1);
    fflush(stdout);
    raise(SIGKILL);
  }
}

int main(int argc, char **argv) {
  program = argv[0];
  /* A string of which nothing says that it is one is only read where it is resident. */
  (void)*(const volatile char *)text;
  setvbuf(stdout, 0, _IOLBF, 0);
  if (argc > 1) {
    fire((void *)atol(argv[1]));
    return 0;
  }
  listen(0);
}
