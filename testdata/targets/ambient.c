/* Runs a command as another user with some capabilities, as a file with `setcap …+ep` has them.
 *     ambient UID NUMBER[,NUMBER]… COMMAND [ARGUMENT]…
 * The numbers are those of linux/capability.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failed(const char *what) {
  fprintf(stderr, "ambient: %s: %s\n", what, strerror(errno));
  return 1;
}

int main(int argc, char **argv) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {0};
  unsigned numbers[64], count = 0;
  if (argc < 4)
    return 2;
  uid_t user = (uid_t)atoi(argv[1]);
  for (char *word = strtok(argv[2], ","); word && count < 64; word = strtok(0, ","))
    numbers[count++] = (unsigned)atoi(word) & 63;
  if (prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, 0) || setresgid(user, user, user) || setresuid(user, user, user))
    return failed("user");
  for (unsigned i = 0; i < count; i++) {
    data[numbers[i] / 32].permitted |= 1u << numbers[i] % 32;
    data[numbers[i] / 32].inheritable |= 1u << numbers[i] % 32;
    data[numbers[i] / 32].effective |= 1u << numbers[i] % 32;
  }
  if (syscall(SYS_capset, &header, data))
    return failed("capset");
  for (unsigned i = 0; i < count; i++)
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, numbers[i], 0, 0))
      return failed("ambient");
  execvp(argv[3], argv + 3);
  return failed(argv[3]);
}
