"""Child processes: their CPU time, what they print, and an end in any case."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time

# No wait is longer, in seconds.
PATIENCE = 120
# Signals that end a comparison.
ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
# Of the clock of another process's CPU time (clock_getcpuclockid(3)).
CPUCLOCK_SCHED = 2


class Failed(Exception):
    """A process did not do what it was started for."""


def handle_signals(handler):
    for number in ENDING:
        signal.signal(number, handler)


def interrupted(*_):
    """Handles the first signal; further ones would interrupt what clears up."""
    handle_signals(signal.SIG_IGN)
    raise KeyboardInterrupt


@contextlib.contextmanager
def uninterrupted():
    """Holds signals back, so that no process is started that nobody ends."""
    held = []
    handle_signals(lambda number, _: held.append(number))
    try:
        yield
    finally:
        handle_signals(interrupted)
        if held:
            interrupted()


class Process:
    """A child process, in a process group of its own: Ctrl-C reaches it through us."""

    def __init__(self, lab, arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, environment=None):
        arguments = list(map(str, arguments))
        self.what = " ".join(arguments)
        self.lab = lab
        self.errors = tempfile.TemporaryFile(dir=lab.path)
        self.begin = time.monotonic()
        with uninterrupted():
            self.child = subprocess.Popen(
                arguments, cwd=lab.path, env=environment, stdin=stdin, stdout=stdout, stderr=self.errors, process_group=0
            )
            self.pid = self.child.pid
            lab.processes.append(self)

    def elapsed(self):
        """Seconds since it was started."""
        return time.monotonic() - self.begin

    def cpu(self):
        """CPU time of all its threads so far, in seconds, until it is waited for."""
        return time.clock_gettime(~self.pid << 3 | CPUCLOCK_SCHED)

    def error_text(self):
        """What is on standard error so far."""
        size = os.fstat(self.errors.fileno()).st_size
        return os.pread(self.errors.fileno(), size, 0).decode(errors="replace")

    def has_said(self, text):
        """Whether a text is on standard error. Fails if it can no longer come."""
        if text in self.error_text():
            return True
        if self.ends_within(0):
            self.finish()
            raise Failed(f"{self.what}: ended without {text!r}")
        if self.elapsed() > PATIENCE:
            raise Failed(f"{self.what}: no {text!r} in {PATIENCE} s")
        return False

    def until_said(self, text):
        while not self.has_said(text):
            time.sleep(0.001)

    def ends_within(self, seconds):
        """Whether it ends within so many seconds; `None` stands for any time."""
        handle = os.pidfd_open(self.pid)
        try:
            return bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self, patience=PATIENCE):
        """Waits for its end; CPU time of the process and of the children that it has waited for, in seconds."""
        if self.child.stdin:
            self.child.stdin.close()
        if not self.ends_within(patience):
            raise Failed(f"{self.what}: not ended after {patience} s")
        usage = self._reap()
        if self.child.returncode != 0:
            raise Failed(f"{self.first_error()} (exit status {self.child.returncode})")
        return usage.ru_utime + usage.ru_stime

    def first_error(self):
        lines = self.error_text().splitlines()
        return next((line for line in lines if "error" in line), lines[0] if lines else self.what)

    def end(self):
        """Ends it, first as Ctrl-C does, so that a recorder detaches."""
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            if self.ends_within(10):
                break
        self._reap()

    def _reap(self):
        _, status, usage = os.wait4(self.pid, 0)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        self.lab.processes.remove(self)
        return usage
