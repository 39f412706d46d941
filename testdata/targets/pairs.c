/* Hits of several kinds, each of which an option of a recorder leaves out or shows otherwise.
 *     pairs LOG FAR
 * Appends `pid N` to the file LOG, then obeys lines of standard input:
 *     wait       until somebody records, then appends `seen`
 *     go         hits of pairs:go: on CPU 0 four with numbers from 700000007 and eight from 710000007, 16 on the last CPU (720000007), 64 in
 *                another thread (770000007) and 32 in a child process (740000007), both on CPU 0; eight each of pairs:deep (780000007),
 *                pairs:forced (760000007) and away:far (750000007) with a string in the file FAR, of which no page is resident. Appends `done`
 *     strange    128 hits of pairs:go on CPU 0 (730000007); appends `done`
 *     burst      hits with strings that do not repeat as long as somebody records; appends `done`
 *     quit       ends */
#define _GNU_SOURCE
#define _SDT_HAS_SEMAPHORES 1
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

__extension__ volatile unsigned short pairs_go_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short pairs_deep_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short pairs_forced_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short away_far_semaphore __attribute__((section(".probes")));

static char text[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static char empty[] = "";
static const char *log_path, *far_path;

static void tell(const char *line) {
  FILE *log = fopen(log_path, "a");
  fprintf(log, "%s\n", line);
  fclose(log);
}

static void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

__attribute__((noinline)) static void hit(int number, const char *passed) {
  unsigned long size = 1 << 20;
  STAP_PROBE4(pairs, go, number, passed, empty, size);
}

static void hits(int cpu, int from, int count) {
  stay_on(cpu);
  for (int i = 0; i < count; i++)
    hit(from + i, text);
}

/* The argument lies in the frame, above what nobody can tell the size of. */
__attribute__((noinline, optimize("O0"))) static void deep(int number, size_t size) {
  int kept = number;
  char *room = alloca(size);
  memset(room, 0, size);
  __asm__ volatile("" : : "r"(room) : "memory");
  STAP_PROBE1(pairs, deep, kept);
}

/* A test puts another instruction into the place of this nop. */
__attribute__((noinline)) static void forced(int number) { STAP_PROBE1(pairs, forced, number); }

__attribute__((noinline)) static void far(int number, const char *passed) { STAP_PROBE2(away, far, number, passed); }

static void others(void) {
  for (int i = 0; i < 8; i++) {
    deep(780000007 + i, 20000);
    forced(760000007 + i);
    int file = open(far_path, O_RDONLY);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    char *mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    far(750000007 + i, mapped);
    munmap(mapped, 4096);
    close(file);
  }
}

static void *in_thread(void *unused) {
  (void)unused;
  hits(0, 770000007, 64);
  return 0;
}

static void go(void) {
  pthread_t thread;
  hits(0, 700000007, 4);
  hits(0, 710000007, 8);
  hits((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, 720000007, 16);
  stay_on(0);
  others();
  pthread_create(&thread, 0, in_thread, 0);
  pthread_join(thread, 0);
  pid_t child = fork();
  if (child == 0) {
    hits(0, 740000007, 32);
    _exit(0);
  }
  waitpid(child, 0, 0);
}

static void burst(void) {
  unsigned state = 1;
  char letters[200];
  for (int number = 790000000; pairs_go_semaphore && number < 791000000; number++) {
    for (int i = 0; i < 199; i++)
      letters[i] = (char)('a' + ((state = state * 1103515245 + 12345) >> 16) % 26);
    letters[199] = 0;
    hit(number, letters);
  }
}

int main(int argc, char **argv) {
  char line[64];
  if (argc < 3)
    return 2;
  log_path = argv[1], far_path = argv[2];
  snprintf(line, sizeof line, "pid %d", getpid());
  tell(line);
  while (fgets(line, sizeof line, stdin)) {
    if (!strcmp(line, "wait\n")) {
      while (!pairs_go_semaphore)
        usleep(1000);
      tell("seen");
      continue;
    }
    if (!strcmp(line, "go\n"))
      go();
    else if (!strcmp(line, "strange\n"))
      hits(0, 730000007, 128);
    else if (!strcmp(line, "burst\n"))
      burst();
    else if (!strcmp(line, "quit\n"))
      return 0;
    tell("done");
  }
  return 0;
}
