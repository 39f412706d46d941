// Maps a library, and waits in munmap(2) of a file of its own FUSE file system, whose server does not take the page, in a user and mount namespace of
// its own, as any user can.
//   stuck_unmap FOLDER LIBRARY ANSWER
// Says `mapped`, takes a line, and unmaps the page; the server takes it once the file ANSWER exists. Then it says `unmapped`, and takes another line.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
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

enum { BUFFER = 1 << 17, SIZE = 4096 };

static int device;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY);
  if (file < 0 || write(file, text, strlen(text)) < 0) fail(path);
  close(file);
}

static void reply(const struct fuse_in_header *in, int error, void *data, size_t size) {
  struct fuse_out_header out = {sizeof out + size, -error, in->unique};
  struct iovec parts[2] = {{&out, sizeof out}, {data, size}};
  if (writev(device, parts, 2) < 0 && errno != ENOENT) fail("reply");
}

static struct fuse_attr attributes(int node) {
  struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096};
  attr.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
  attr.size = node == 1 ? 0 : SIZE;
  return attr;
}

static void answer(const struct fuse_in_header *in, const char *answered) {
  static char data[SIZE];
  switch (in->opcode) {
    case FUSE_INIT: {
      struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = 65536, .max_write = 65536, .time_gran = 1};
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_LOOKUP: {
      struct fuse_entry_out out = {.nodeid = 2, .attr = attributes(2)};
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_GETATTR: {
      struct fuse_attr_out out = {.attr = attributes(in->nodeid)};
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_OPEN: {
      struct fuse_open_out out = {.fh = 1};
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_READ: reply(in, 0, data, SIZE); break;
    case FUSE_WRITE: {
      struct fuse_write_out out = {.size = ((const struct fuse_write_in *)(in + 1))->size};
      while (access(answered, F_OK)) usleep(10000);
      reply(in, 0, &out, sizeof out);
      break;
    }
    case FUSE_FLUSH:
    case FUSE_RELEASE: reply(in, 0, 0, 0); break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: break;
    default: reply(in, ENOSYS, 0, 0);
  }
}

static void serve(const char *answered) {
  static char buffer[BUFFER];
  for (;;) {
    ssize_t size = read(device, buffer, sizeof buffer);
    if (size >= 0) answer((void *)buffer, answered);
    else if (errno == ENODEV) return;
  }
}

int main(int count, char **words) {
  char options[200], users[64], groups[64], path[4096], line[64];
  if (count != 4) return 2;
  snprintf(users, sizeof users, "0 %d 1\n", getuid());
  snprintf(groups, sizeof groups, "0 %d 1\n", getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) fail("unshare");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", users);
  write_file("/proc/self/gid_map", groups);
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) fail("/dev/fuse");
  snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0", device);
  if (mount("stuck", words[1], "fuse", MS_NOSUID | MS_NODEV, options)) fail("mount fuse");
  switch (fork()) {
    case -1: fail("fork");
    case 0:
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(0);
      close(1);
      serve(words[3]);
      _exit(0);
  }
  if (!dlopen(words[2], RTLD_NOW)) fail(words[2]);
  snprintf(path, sizeof path, "%s/file", words[1]);
  int file = open(path, O_RDWR);
  if (file < 0) fail(path);
  char *page = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) fail("mmap");
  *page = 1;
  puts("mapped");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 0;
  munmap(page, SIZE);
  puts("unmapped");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 0;
}
