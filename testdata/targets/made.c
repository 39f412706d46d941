// Code that is made at run time calls a function with a probe; a perf map names it.
// made map|fifo|link|stale|foreign [wait|first]: prints its pid; how often each path is taken is in main(). With wait, it ends with its input; with first,
// it begins with a line of it.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef void target(long);
typedef void caller(target *, long);

// push the frame pointer, call the first argument with the second one, return
#if defined(__x86_64__)
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
#elif defined(__aarch64__)
static const unsigned code[] = {0xa9bf7bfd, 0x910003fd, 0xaa0003e2, 0xaa0103e0, 0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
#endif

static caller *a, *b;

__attribute__((noinline)) static void hit(long n) {
    DTRACE_PROBE1(made, hit, n);
    __asm__ volatile("");
}

__attribute__((noinline)) static void nested(long n) {
    a(hit, n);
    __asm__ volatile("");
}

static caller *make(char *at) {
    memcpy(at, code, sizeof code);
    __builtin___clear_cache(at, at + sizeof code);
    return (caller *)at;
}

int main(int argc, char **argv) {
    char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || memory == MAP_FAILED)
        return 1;
    a = make(memory + 0x100);
    b = make(memory + 0x200);
    char map[64], other[64];
    snprintf(map, sizeof map, "/tmp/perf-%d.map", getpid());
    snprintf(other, sizeof other, "/tmp/perf-%d.other", getpid());
    const char *name = strcmp(argv[1], "link") ? map : other;
    if (!strcmp(argv[1], "fifo")) {
        if (mkfifo(map, 0600))
            return 1;
    } else {
        FILE *file = fopen(name, "w");
        if (!file)
            return 1;
        fprintf(file, "no line of a map\n%lx %zx replaced\n", (long)a, sizeof code);
        fprintf(file, "%lx %zx made a\n%lx %zx made;b\033[1m\n", (long)a, sizeof code, (long)b, sizeof code);
        fclose(file);
        // as a process of that pid left it that ran an hour ago
        struct timespec before[2] = {{time(0) - 3600, 1}, {time(0) - 3600, 1}};
        if (!strcmp(argv[1], "stale") && utimensat(AT_FDCWD, name, before, 0))
            return 1;
        if (!strcmp(argv[1], "foreign") && chown(name, 65534, 65534))
            return 1;
        if (name == other && symlink(other, map))
            return 1;
    }
    int is_first = argc > 2 && !strcmp(argv[2], "first");
    if (is_first) {
        printf("%d\n", getpid());
        fflush(stdout);
        getchar();
    }
    for (int i = 0; i < 3; i++)
        a(hit, i);
    for (int i = 0; i < 5; i++)
        b(hit, i);
    for (int i = 0; i < 2; i++)
        b(nested, i);
    if (is_first)
        return 0;
    printf("%d\n", getpid());
    fflush(stdout);
    if (argc > 2)
        getchar();
    return 0;
}
