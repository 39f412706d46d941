// Hits its probe, of the provider that an option of the compiler defines, every 0.2 ms until something is on its standard input, or as often as its
// second argument says if that is not 0. The arguments of the probe are the first argument of the program (for `inode` the inode of its file), the number
// of the hit from 1, and the time (CLOCK_MONOTONIC, ns). At its end it prints its process id, the first of these, the time of its start and that of each
// hit, in one line. What further arguments say is done first:
//   memory PATH  executes a copy of the program at PATH in a memfd instead
//   remove       removes the file of this program
//   replace PATH puts another file at its path
//   link PATH    puts a symbolic link to PATH at its path
//   detach PATH  detaches the mount at PATH, in which this program may be
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sdt.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST 500000
static long times[MOST];

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void check(int succeeded, const char *what) {
  if (succeeded) return;
  perror(what);
  exit(1);
}

static long inode(void) {
  struct stat file;
  check(!stat("/proc/self/exe", &file), "stat");
  return file.st_ino;
}

static void execute_copy(char **arguments) {
  char block[65536];
  ssize_t size;
  int from = open(arguments[4], O_RDONLY), copy = memfd_create("appearing", MFD_CLOEXEC);
  check(from >= 0 && copy >= 0, "memfd_create");
  while ((size = read(from, block, sizeof block)) > 0) check(write(copy, block, size) == size, "write");
  arguments[3] = NULL;
  fexecve(copy, arguments, environ);
  check(0, "fexecve");
}

static void prepare(char **arguments) {
  const char *how = arguments[3], *path = arguments[4];
  if (!strcmp(how, "memory")) execute_copy(arguments);
  if (!strcmp(how, "remove")) check(!unlink(arguments[0]), "unlink");
  if (!strcmp(how, "replace")) check(!rename(path, arguments[0]), "rename");
  if (!strcmp(how, "link")) check(!unlink(arguments[0]) && !symlink(path, arguments[0]), "symlink");
  if (!strcmp(how, "detach")) check(!umount2(path, MNT_DETACH), "umount2");
}

int main(int count, char **arguments) {
  struct pollfd input = {0, POLLIN, 0};
  struct timespec pause = {0, 200000};
  long start = now(), first, most, hits = 0;
  if (count < 3) return 2;
  first = strcmp(arguments[1], "inode") ? atol(arguments[1]) : inode(), most = atol(arguments[2]);
  if (count > 3) prepare(arguments);
  do {
    times[hits++] = now();
    DTRACE_PROBE3(PROVIDER, hit, first, hits, times[hits - 1]);
  } while (hits < MOST && (most ? hits < most : ppoll(&input, 1, &pause, NULL) == 0));
  printf("%d %ld %ld", (int)getpid(), first, start);
  for (long hit = 0; hit < hits; hit++) printf(" %ld", times[hit]);
  puts("");
  return 0;
}
