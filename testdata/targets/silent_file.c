// Maps a file whose file system does not answer other processes: silent_file DIR FILE silent|direct
//
// DIR/file is FILE, served by a child over FUSE, in a mount namespace of these two processes. Requests of others to open it are not answered until they are
// interrupted; with `direct`, they are, and it is read past the page cache (direct I/O). The process maps its code, says so, and ends with its input.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DIRECTORY = FUSE_ROOT_ID, FILE_INODE = 2, REQUEST_BYTES = 1 << 17, VALID_SECONDS = 1000 };

static void check(int failed, const char *what) {
  if (failed) {
    perror(what);
    exit(1);
  }
}

static struct fuse_attr attributes(unsigned long inode, size_t size) {
  int is_file = inode == FILE_INODE;
  return (struct fuse_attr){.ino = inode,
                            .nlink = 1,
                            .mode = is_file ? S_IFREG | 0755 : S_IFDIR | 0755,
                            .size = is_file ? size : 0,
                            .blksize = 4096};
}

// Whether a thread is one of a process.
static int is_of(unsigned tid, int pid) {
  char path[64], line[128];
  int process = 0;
  snprintf(path, sizeof path, "/proc/%u/status", tid);
  FILE *status = fopen(path, "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "Tgid: %d", &process) == 1)
      break;
  if (status != NULL)
    fclose(status);
  return process == pid;
}

static void answer(int device, unsigned long unique, int error, const void *data, size_t size) {
  struct fuse_out_header head = {.len = sizeof head + size, .error = error, .unique = unique};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)data, size}};
  // ENOENT: nobody waits for it any more.
  check(writev(device, parts, 2) < 0 && errno != ENOENT, "answer");
}

static int open_flags = FOPEN_KEEP_CACHE;

static void answer_one(int device, const char *content, size_t size, int mapper) {
  static char buffer[REQUEST_BYTES];
  if (read(device, buffer, sizeof buffer) < 0) {
    // A request that was interrupted before it was read.
    check(errno != ENOENT && errno != EINTR && errno != EAGAIN, "request");
    return;
  }
  struct fuse_in_header *request = (void *)buffer;
  void *argument = request + 1;
  switch (request->opcode) {
  case FUSE_INIT: {
    struct fuse_init_in *in = argument;
    struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = in->minor, .max_write = 4096};
    return answer(device, request->unique, 0, &out, sizeof out);
  }
  case FUSE_LOOKUP: {
    struct fuse_entry_out out = {.nodeid = FILE_INODE,
                                 .entry_valid = VALID_SECONDS,
                                 .attr_valid = VALID_SECONDS,
                                 .attr = attributes(FILE_INODE, size)};
    if (strcmp(argument, "file") != 0)
      return answer(device, request->unique, -ENOENT, NULL, 0);
    return answer(device, request->unique, 0, &out, sizeof out);
  }
  case FUSE_GETATTR: {
    struct fuse_attr_out out = {.attr_valid = VALID_SECONDS, .attr = attributes(request->nodeid, size)};
    return answer(device, request->unique, 0, &out, sizeof out);
  }
  case FUSE_OPEN: {
    struct fuse_open_out out = {.open_flags = open_flags};
    if (open_flags == FOPEN_DIRECT_IO || is_of(request->pid, mapper))
      answer(device, request->unique, 0, &out, sizeof out);
    return;
  }
  case FUSE_READ: {
    struct fuse_read_in *in = argument;
    size_t left = in->offset < size ? size - in->offset : 0;
    return answer(device, request->unique, 0, content + in->offset, left < in->size ? left : in->size);
  }
  case FUSE_FLUSH:
  case FUSE_RELEASE:
    return answer(device, request->unique, 0, NULL, 0);
  case FUSE_FORGET:
  case FUSE_BATCH_FORGET:
    return;
  case FUSE_INTERRUPT: {
    struct fuse_interrupt_in *in = argument;
    return answer(device, in->unique, -EINTR, NULL, 0);
  }
  default:
    answer(device, request->unique, -ENOSYS, NULL, 0);
  }
}

int main(int argc, char **argv) {
  char options[100], path[4096];
  struct stat status;
  if (argc != 4)
    return 2;
  if (strcmp(argv[3], "direct") == 0)
    open_flags = FOPEN_DIRECT_IO;
  int mapper = getpid();
  int file = open(argv[2], O_RDONLY);
  check(file < 0 || fstat(file, &status) < 0, argv[2]);
  size_t size = status.st_size;
  const char *content = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  check(content == MAP_FAILED, argv[2]);
  int device = open("/dev/fuse", O_RDWR);
  check(device < 0, "/dev/fuse");
  check(unshare(CLONE_NEWNS) < 0, "unshare");
  check(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0, "private mounts");
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
  check(mount("silent", argv[1], "fuse", MS_NODEV | MS_NOSUID, options) < 0, argv[1]);
  pid_t server = fork();
  check(server < 0, "fork");
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      answer_one(device, content, size, mapper);
  }
  close(device);
  snprintf(path, sizeof path, "%s/file", argv[1]);
  int mapped = open(path, O_RDONLY);
  check(mapped < 0, path);
  const volatile char *code = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, mapped, 0);
  check(code == MAP_FAILED || code[0] != content[0], path);
  munmap((void *)content, size);
  puts("mapped");
  fflush(stdout);
  while (getchar() != EOF)
    continue;
  kill(server, SIGKILL);
  return 0;
}
