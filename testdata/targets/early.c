// Hits its probes as early as it can: in a constructor, then in a function. A program and a library, of the provider that an option of the
// compiler defines. With paths of copies of the program as arguments, maps each without the loader, hits the probe there, and prints how many it
// mapped.
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

__attribute__((constructor)) static void before(void) { DTRACE_PROBE1(PROVIDER, early, 1); }

void late_work(long number) { DTRACE_PROBE1(PROVIDER, hit, number); }

// The file offset of late_work in the first object, the program.
static int find(struct dl_phdr_info *object, size_t size, void *offset) {
  unsigned long at = (unsigned long)late_work - object->dlpi_addr;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD && at >= segment->p_vaddr && at < segment->p_vaddr + segment->p_memsz)
      *(unsigned long *)offset = segment->p_offset + at - segment->p_vaddr;
  }
  return 1;
}

int main(int argc, char **argv) {
  unsigned long offset = 0, page = sysconf(_SC_PAGESIZE);
  if (argc < 2) late_work(2);
  dl_iterate_phdr(find, &offset);
  for (int i = 1; i < argc; i++) {
    int file = open(argv[i], O_RDONLY);
    char *code = mmap(0, 2 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, offset & -page);
    if (file < 0 || code == MAP_FAILED) {
      perror(argv[i]);
      return 1;
    }
    ((void (*)(long))(code + offset % page))(i);
    close(file);
  }
  if (argc > 1) printf("%d\n", argc - 1);
  return 0;
}
