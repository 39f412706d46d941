/* Hits strings:NAME with the number of the hit and a string that is special in some way, and prints `NAME ADDRESS`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

#define PAGE 4096

#define PASS(name, string)                                   \
  do {                                                       \
    const char *volatile passed = (string);                  \
    STAP_PROBE2(strings, name, 7, passed);                   \
    printf(#name " %lu\n", (unsigned long)passed);           \
  } while (0)

/* A literal in a page that nothing else touches. */
__attribute__((aligned(PAGE))) static const char untouched[2 * PAGE] = "never touched before";
__attribute__((aligned(PAGE))) static const char untouched_end[2 * PAGE] = {[PAGE - 3] = 'c', 'r', 'o', 's', 's', 'e', 's'};

/* A file's page that is not in memory. */
static char *dropped(const char *text) {
  char name[] = "/tmp/usdtrec-test-strings-XXXXXX";
  int file = mkstemp(name);
  unlink(name);
  if (ftruncate(file, PAGE) || pwrite(file, text, strlen(text), 0) < 0)
    exit(1);
  fsync(file);
  char *map = mmap(0, PAGE, PROT_READ, MAP_SHARED, file, 0);
  posix_fadvise(file, 0, PAGE, POSIX_FADV_DONTNEED);
  return map;
}

static char *filled(char *out, char byte, int count) {
  memset(out, byte, count);
  out[count] = 0;
  return out;
}

int main(void) {
  static char buffer[8192];
  char *forbidden = mmap(0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *last = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(last + PAGE, PAGE, PROT_NONE);
  memset(last, 'x', PAGE);
  memcpy(last + PAGE - 6, "edged", 6);
  /* Its page, with those near it that are in the page cache. */
  (void)*(const volatile char *)"/index.html";
  PASS(plain, "/index.html");
  PASS(empty, "");
  PASS(untouched, untouched);
  PASS(crossing, untouched_end + PAGE - 3);
  PASS(dropped, dropped("from a file"));
  PASS(edge, last + PAGE - 6);
  PASS(null, (char *)0);
  PASS(forbidden, forbidden);
  PASS(unterminated, (last[PAGE - 1] = 'y', last + PAGE - 6));
  PASS(control, "a\tb\nc\\d\"e\x1b[0m");
  PASS(utf8, "gr\303\266\303\237e");
  PASS(binary, "\001\002\003");
  PASS(exact16, filled(buffer, 'e', 16));
  PASS(over16, filled(buffer, 'o', 17));
  PASS(exact256, filled(buffer, 'E', 256));
  PASS(over256, filled(buffer, 'O', 257));
  PASS(long4096, filled(buffer, 'L', 4096));
  PASS(long5000, filled(buffer, 'M', 5000));
  return 0;
}
