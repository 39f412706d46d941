/* Opens the shared library of library.c, whose path is the argument, and calls it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  setvbuf(stdout, 0, _IOLBF, 0);
  void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*work)(int, const char *, double);
  *(void **)&work = dlsym(library, "library_work");
  for (int i = 0; i < 5; i++)
    work(i * -7, "text", i * 0.125);
  return 0;
}
