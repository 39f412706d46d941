/* Copies its own code out of its file, to anonymous memory at the same addresses, as programs do that move it to huge pages.
 *
 *     copied_code WAIT HITS [all]
 *
 * WAIT is the time before it copies, ms, or `line`: until it has read a line; `never`: it does not copy. Then it hits copied:hit as often, once a
 * millisecond, and prints `hits N`. With `all`, it copies all of its executable segment, so that none of its file is executable. */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HUGIFY
void __bolt_hugify_self(void) {}
#endif

__attribute__((noinline, section("hot"), aligned(4096))) void hit(int i) { DTRACE_PROBE1(copied, hit, i); }

/* The system calls that replace the code that makes them are made by code in other memory. */
typedef void (*replace_code)(char *, size_t, char *);

__attribute__((noinline, section("replacing"), aligned(4096))) static void replace(char *at, size_t size, char *copy) {
  register long r10 __asm__("r10"), r8 __asm__("r8"), r9 __asm__("r9");
  long result = SYS_mmap;
  r10 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, r8 = -1, r9 = 0;
  __asm__ volatile("syscall" : "+a"(result) : "D"(at), "S"(size), "d"(PROT_READ | PROT_WRITE | PROT_EXEC), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  char *to = at, *from = copy;
  size_t left = size;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
  result = SYS_mprotect;
  __asm__ volatile("syscall" : "+a"(result) : "D"(at), "S"(size), "d"(PROT_READ | PROT_EXEC) : "rcx", "r11", "memory");
}

static char *begin, *end;

static int find(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size, (void)data;
  for (int i = 0; i < info->dlpi_phnum && !begin; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
      unsigned long at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      begin = (char *)(at & ~4095UL);
      end = (char *)((at + info->dlpi_phdr[i].p_memsz + 4095) & ~4095UL);
    }
  return 1;
}

static void move(int all) {
  begin = (char *)hit, end = begin + 4096;
  if (all)
    begin = 0, dl_iterate_phdr(find, 0);
  size_t size = (size_t)(end - begin);
  char *copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, begin, size);
  memcpy(code, (char *)replace, 4096);
  replace_code run;
  memcpy(&run, &code, sizeof run);
  run(begin, size, copy);
  munmap(code, 4096);
  munmap(copy, size);
}

int main(int argc, char **argv) {
  const char *wait = argc > 1 ? argv[1] : "0";
  char line[16];
  if (!strcmp(wait, "line")) {
    if (!fgets(line, sizeof line, stdin))
      return 1;
  } else if (strcmp(wait, "never"))
    usleep(1000U * (unsigned)atoi(wait));
  if (strcmp(wait, "never"))
    move(argc > 3);
  puts("copied");
  fflush(stdout);
  int hits = argc > 2 ? atoi(argv[2]) : 100;
  for (int i = 0; i < hits; i++) {
    hit(i);
    usleep(1000);
  }
  printf("hits %d\n", hits);
  return 0;
}
