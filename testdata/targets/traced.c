// Runs a program as its tracer, as strace does (PTRACE_SEIZE), and prints at its end how often it was stopped by SIGSTOP, and its exit status.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int go[2], status = 0, stops = 0;
  char byte;
  if (argc < 2 || pipe(go)) return 2;
  pid_t child = fork();
  if (child == 0) {
    close(go[1]);
    if (read(go[0], &byte, 1) == 1) execv(argv[1], argv + 1);
    _exit(127);
  }
  if (child < 0 || ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL)) {
    perror("ptrace");
    return 2;
  }
  if (write(go[1], "", 1) != 1) return 2;
  while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) {
    int by = WSTOPSIG(status), event = status >> 16;
    stops += by == SIGSTOP;
    if (event == PTRACE_EVENT_STOP && by != SIGTRAP)
      ptrace(PTRACE_LISTEN, child, 0, 0);
    else
      ptrace(PTRACE_CONT, child, 0, event ? 0 : by);
  }
  printf("stops %d, status %d\n", stops, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 0;
}
