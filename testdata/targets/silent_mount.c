// Serves a library by FUSE, with an overlay above it, in a user and mount namespace of its own, as any user can; then executes a program there.
//   silent_mount FOLDER LIBRARY PROGRAM
// FOLDER/o/lib.so is the library. While FOLDER/silent exists, only requests of the program are answered; others wait, also when they are
// interrupted. The server ends with its last mount, or when the program has ended.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_HELD = 1024, BUFFER = 1 << 17 };

static int device, library;
static struct stat found;
static char silent[4096];
static void *held[MAX_HELD];
static int held_number;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY);
  if (file < 0 || write(file, text, strlen(text)) < 0) fail(path);
  close(file);
}

static struct fuse_attr attributes(int node) {
  struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096};
  attr.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0755;
  if (node != 1) {
    attr.size = found.st_size;
    attr.blocks = (found.st_size + 511) / 512;
  }
  return attr;
}

static void reply(const struct fuse_in_header *in, int error, void *data, size_t size) {
  struct fuse_out_header out = {sizeof out + size, -error, in->unique};
  struct iovec parts[2] = {{&out, sizeof out}, {data, size}};
  // Who asked may have been killed.
  if (writev(device, parts, 2) < 0 && errno != ENOENT) fail("reply");
}

static void answer(const struct fuse_in_header *in) {
  static char data[BUFFER];
  const void *arguments = in + 1;
  switch (in->opcode) {
    case FUSE_INIT: {
      struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = 65536, .max_write = 65536, .time_gran = 1};
      out.max_background = 16;
      out.congestion_threshold = 12;
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_LOOKUP: {
      struct fuse_entry_out out = {.nodeid = 2, .attr = attributes(2)};
      int is_it = !strcmp(arguments, "lib.so");
      reply(in, is_it ? 0 : ENOENT, &out, is_it ? sizeof out : 0);
      break;
    }
    case FUSE_GETATTR: {
      struct fuse_attr_out out = {.attr = attributes(in->nodeid)};
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
      struct fuse_open_out out = {.fh = 1};
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_READ: {
      const struct fuse_read_in *read = arguments;
      ssize_t size = pread(library, data, read->size > 65536 ? 65536 : read->size, read->offset);
      reply(in, 0, data, size < 0 ? 0 : size);
      break;
    }
    case FUSE_STATFS: {
      struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255}};
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_READDIR:
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_ACCESS: reply(in, 0, 0, 0); break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: break;
    case FUSE_GETXATTR:
    case FUSE_LISTXATTR: reply(in, EOPNOTSUPP, 0, 0); break;
    default: reply(in, ENOSYS, 0, 0);
  }
}

static void serve(unsigned program) {
  static char buffer[BUFFER];
  for (;;) {
    struct pollfd asked = {device, POLLIN, 0};
    int ready = poll(&asked, 1, 50);
    int is_silent = !access(silent, F_OK);
    for (; !is_silent && held_number; free(held[held_number])) answer(held[--held_number]);
    if (ready <= 0) continue;
    ssize_t size = read(device, buffer, sizeof buffer);
    if (size < 0) {
      if (errno == ENODEV) return;
      continue;
    }
    struct fuse_in_header *in = (void *)buffer;
    int needs_none = in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
                     in->opcode == FUSE_INTERRUPT || in->opcode == FUSE_INIT;
    if (needs_none || !is_silent || in->pid == program || held_number == MAX_HELD) {
      answer(in);
      continue;
    }
    fprintf(stderr, "held %u of %u\n", in->opcode, in->pid);
    held[held_number] = malloc(size);
    memcpy(held[held_number++], buffer, size);
  }
}

int main(int count, char **words) {
  char mount_point[4096], above[4096], below[4096], options[9000], users[64], groups[64];
  if (count != 4) return 2;
  snprintf(mount_point, sizeof mount_point, "%s/m", words[1]);
  snprintf(above, sizeof above, "%s/o", words[1]);
  snprintf(below, sizeof below, "%s/l", words[1]);
  snprintf(silent, sizeof silent, "%s/silent", words[1]);
  mkdir(mount_point, 0755);
  mkdir(above, 0755);
  mkdir(below, 0755);
  library = open(words[2], O_RDONLY);
  if (library < 0 || fstat(library, &found)) fail(words[2]);
  snprintf(users, sizeof users, "0 %d 1\n", getuid());
  snprintf(groups, sizeof groups, "0 %d 1\n", getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) fail("unshare");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", users);
  write_file("/proc/self/gid_map", groups);
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) fail("/dev/fuse");
  snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0", device);
  if (mount("silent", mount_point, "fuse", MS_NOSUID | MS_NODEV, options)) fail("mount fuse");
  pid_t program = getpid();
  switch (fork()) {
    case -1: fail("fork");
    case 0:
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      // The streams are the program's.
      close(0);
      close(1);
      serve(program);
      _exit(0);
  }
  snprintf(options, sizeof options, "lowerdir=%s:%s,userxattr", mount_point, below);
  if (mount("above", above, "overlay", 0, options)) fail("mount overlay");
  execl(words[3], words[3], (char *)0);
  fail(words[3]);
}
