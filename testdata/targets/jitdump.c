// Code that is made at run time calls a function with a probe; a jitdump in the current directory names it.
// jitdump kept|garbled|removed|replaced [wait]: prints its pid, then how often it called each function by name. With wait, it ends with its input.
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

typedef void target(long);
typedef void caller(target *, long);

// push the frame pointer, call the first argument with the second one, return
#if defined(__x86_64__)
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
static const unsigned code[] = {0xa9bf7bfd, 0x910003fd, 0xaa0003e2, 0xaa0103e0, 0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
#define MACHINE EM_AARCH64
#endif

static int dump;
static char *memory;

__attribute__((noinline)) static void hit(long n) {
    DTRACE_PROBE1(jitdump, hit, n);
    __asm__ volatile("");
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void record(uint32_t kind, const uint64_t *numbers, unsigned count, const char *name) {
    uint32_t ids[2] = {getpid(), getpid()};
    uint32_t size = 16 + sizeof ids + count * 8 + (name ? strlen(name) + 1 + sizeof code : 0);
    uint64_t time = now();
    write(dump, &kind, 4), write(dump, &size, 4), write(dump, &time, 8);
    write(dump, ids, sizeof ids), write(dump, numbers, count * 8);
    if (name)
        write(dump, name, strlen(name) + 1), write(dump, code, sizeof code);
}

static caller *copy(unsigned at) {
    memcpy(memory + at, code, sizeof code);
    __builtin___clear_cache(memory + at, memory + at + sizeof code);
    return (caller *)(memory + at);
}

static caller *load(unsigned at, uint64_t index, const char *name) {
    uint64_t start = (uint64_t)memory + at;
    uint64_t numbers[] = {start, start, sizeof code, index};
    record(0, numbers, 4, name);
    return copy(at);
}

static caller *move(unsigned from, unsigned to, uint64_t index) {
    uint64_t before = (uint64_t)memory + from, after = (uint64_t)memory + to;
    uint64_t numbers[] = {after, before, after, sizeof code, index};
    record(1, numbers, 5, 0);
    return copy(to);
}

static void call(caller *made, int times, const char *name) {
    for (int i = 0; i < times; i++)
        made(hit, i);
    printf("%s %d\n", name, times);
}

static void begin(const char *name) {
    uint32_t head[6] = {0x4a695444, 1, 40, MACHINE, 0, getpid()};
    uint64_t rest[2] = {now(), 0};
    dump = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    write(dump, head, sizeof head), write(dump, rest, sizeof rest);
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
}

int main(int argc, char **argv) {
    memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || memory == MAP_FAILED)
        return 1;
    char name[32];
    snprintf(name, sizeof name, "jit-%d.dump", getpid());
    begin(name);
    printf("%d\n", getpid());
    if (!strcmp(argv[1], "removed") || !strcmp(argv[1], "replaced"))
        unlink(name);
    if (!strcmp(argv[1], "replaced"))
        close(open(name, O_CREAT | O_RDWR, 0600));
    call(load(0x100, 1, "first"), 3, "first");
    if (!strcmp(argv[1], "garbled"))
        for (int i = 0; i < 1000; i++)
            write(dump, "\377\377\377\377garbage", 11);
    caller *second = load(0x100, 2, "second");
    call(second, 5, "second");
    call(move(0x100, 0x200, 2), 2, "second");
    call(load(0x100, 3, "third\033[1m"), 4, "third");
    call((caller *)(memory + 0x200), 1, "second");
    fflush(stdout);
    if (argc > 2)
        getchar();
    return 0;
}
