/* Hits absent:text with the address of a string that is not resident.
 *     absent KIND SECONDS [PROCESSES [THREADS [USER]]]
 * KIND: `late`: memory of a userfaultfd, which another thread serves after SECONDS; `self`: which the thread itself would serve after the
 * hit; `fuse`: a file of a FUSE file system whose server answers reads after SECONDS; `file`: a file of the current directory;
 * `anonymous`: memory never touched; `none`: memory that nobody may read; `end`: a string that the end of its mapping cuts; `across`: a
 * string that begins in memory and goes on in what `self` has; else the path of a file.
 * Waits for a line on standard input, prints `hitting`, then `PID hit`, and after SECONDS `served`.
 * Each process dies after SECONDS + 30 s in any case. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The largest page of a kernel, bytes. */
#define MOST 65536
#define TEXT "served at last"

static unsigned seconds;
static int faults;
static long page_size;
static char *page;
/* Bytes of the string that stand before the page. */
static int before;

static void die(const char *what) {
  perror(what);
  _exit(1);
}

static void ends_with_parent(void) {
  alarm(seconds + 30);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

__attribute__((noinline)) static void hit(unsigned long text) {
  STAP_PROBE1(absent, text, text);
}

static void serve(void) {
  static char content[MOST] = TEXT;
  struct uffdio_copy copy = {.dst = (unsigned long)page, .src = (unsigned long)content, .len = page_size};
  if (ioctl(faults, UFFDIO_COPY, &copy))
    die("UFFDIO_COPY");
}

/* setuid(2) of one thread interrupts what the others wait for. */
static void *serve_late(void *unused) {
  unsigned left = seconds;
  (void)unused;
  while (left)
    left = sleep(left);
  serve();
  return 0;
}

static void *wait_for_ever(void *unused) {
  (void)unused;
  for (;;)
    pause();
  return 0;
}

/* Two pages, the first of them full of a string without an end; the second is the one that matters. */
static void after_text(void) {
  page = mmap(0, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(page, 'a', page_size);
  page += page_size;
}

static void of_userfaultfd(void) {
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING, .range = {(unsigned long)page, page_size}};
  faults = syscall(SYS_userfaultfd, O_CLOEXEC);
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &area))
    die("userfaultfd");
}

static void answer(int device, unsigned long long request, int error, const void *body, unsigned len) {
  struct fuse_out_header head = {.len = sizeof head + len, .error = error, .unique = request};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)body, len}};
  if (writev(device, parts, len ? 2 : 1) < 0 && !error)
    perror("answer");
}

/* A file system with one file, number 2. */
static void serve_files(int device) {
  static char request[1 << 17], content[MOST] = TEXT;
  for (;;) {
    long got = read(device, request, sizeof request);
    if (got < (long)sizeof(struct fuse_in_header))
      _exit(0);
    struct fuse_in_header *head = (void *)request;
    struct fuse_attr file = {.ino = 2, .size = page_size, .mode = S_IFREG | 0444, .nlink = 1, .blksize = page_size};
    struct fuse_attr root = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2};
    struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = page_size, .max_background = 8};
    struct fuse_entry_out entry = {.nodeid = 2, .attr = file, .entry_valid = 100, .attr_valid = 100};
    struct fuse_attr_out attr = {.attr_valid = 100, .attr = head->nodeid == 1 ? root : file};
    struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};
    switch (head->opcode) {
    case FUSE_INIT:
      answer(device, head->unique, 0, &init, sizeof init);
      break;
    case FUSE_LOOKUP:
      answer(device, head->unique, 0, &entry, sizeof entry);
      break;
    case FUSE_GETATTR:
      answer(device, head->unique, 0, &attr, sizeof attr);
      break;
    case FUSE_OPEN:
      answer(device, head->unique, 0, &opened, sizeof opened);
      break;
    case FUSE_READ:
      sleep(seconds);
      answer(device, head->unique, 0, content, page_size);
      break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
      answer(device, head->unique, 0, 0, 0);
      break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      break;
    default:
      answer(device, head->unique, -38, 0, 0);
    }
  }
}

static void of_file(const char *path) {
  int file = open(path, O_RDONLY);
  if (file < 0)
    die(path);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  page = mmap(0, page_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (page == MAP_FAILED)
    die("mmap");
}

static void of_fuse(void) {
  char options[100], directory[] = "mounted-XXXXXX", path[40];
  int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  /* The mount goes with us. */
  if (device < 0 || unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0))
    die("/dev/fuse");
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
  if (!mkdtemp(directory) || mount("absent", directory, "fuse.absent", MS_NODEV | MS_NOSUID, options))
    die("mount");
  if (fork() == 0) {
    ends_with_parent();
    serve_files(device);
  }
  /* So that the end of the server is that of the file system. */
  close(device);
  snprintf(path, sizeof path, "%s/file", directory);
  of_file(path);
}

static void dropped(void) {
  char name[] = "absent-XXXXXX";
  int file = mkstemp(name);
  if (file < 0 || ftruncate(file, page_size) || pwrite(file, TEXT, sizeof TEXT, 0) < 0 || fsync(file) || fchmod(file, 0444))
    die("a file");
  of_file(name);
  unlink(name);
}

static void run(const char *kind, int threads, unsigned user) {
  pthread_t thread;
  ends_with_parent();
  after_text();
  if (!strcmp(kind, "end") || !strcmp(kind, "across"))
    before = 200;
  if (!strcmp(kind, "late") || !strcmp(kind, "self") || !strcmp(kind, "across"))
    of_userfaultfd();
  else if (!strcmp(kind, "fuse"))
    of_fuse();
  else if (!strcmp(kind, "file"))
    dropped();
  else if (!strcmp(kind, "none"))
    mprotect(page, page_size, PROT_NONE);
  else if (!strcmp(kind, "end"))
    munmap(page, page_size);
  else if (strcmp(kind, "anonymous"))
    of_file(kind);
  for (int i = 1; i < threads; i++)
    pthread_create(&thread, 0, wait_for_ever, 0);
  if (!strcmp(kind, "late"))
    pthread_create(&thread, 0, serve_late, 0);
  if (user && (setgid(user) || setuid(user)))
    die("setuid");
  /* That took away what ends us with our parent. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  hit((unsigned long)page - before);
  printf("%d hit\n", getpid());
  fflush(stdout);
  if (!strcmp(kind, "self"))
    serve();
  if (!strcmp(kind, "late") || !strcmp(kind, "self") || !strcmp(kind, "fuse")) {
    sleep(seconds);
    printf("served: %s\n", page);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  int processes = argc > 3 ? atoi(argv[3]) : 1;
  seconds = atoi(argv[2]);
  page_size = sysconf(_SC_PAGESIZE);
  if (getchar() == EOF)
    return 1;
  printf("hitting\n");
  fflush(stdout);
  for (int i = 0; i < processes; i++)
    if (fork() == 0) {
      run(argv[1], argc > 4 ? atoi(argv[4]) : 1, argc > 5 ? atoi(argv[5]) : 0);
      _exit(0);
    }
  for (int i = 0; i < processes; i++)
    wait(0);
  return 0;
}
