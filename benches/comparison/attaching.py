"""Attaching to all probes of a running JVM, and detaching."""

import functools
import time

from .jvm import Jvm
from .process import Failed
from .recorder import Recorder
from .unit import MILLISECONDS


class Attaching:
    def __init__(self, lab, jvm, options):
        self.lab, self.jvm = lab, jvm
        self.options = options
        self.what = f"`{' '.join(['record', *options])}`, all probes of libjvm.so"
        # What each build attaches to, as its first run shows.
        self.sites = {}

    def take(self, build):
        before = self.jvm.attached_sites()
        if before:
            raise Failed(f"{len(before)} sites are breakpoints already")
        options = ["-p", self.jvm.pid, "-o", build.file("attached"), *self.options]
        recorder = Recorder(build, *options, "-e", f"hotspot*:*@{self.jvm.library}")
        if build.label not in self.sites:
            recorder.until_ready()
            self.sites[build.label] = self.jvm.attached_sites()
        sites = self.sites[build.label]
        self.jvm.until(sites, attached=True)
        attach = recorder.process.elapsed()
        attach_cpu = recorder.process.cpu()
        recorder.until_ready()
        time.sleep(0.02)
        ready_cpu, begin = recorder.process.cpu(), time.monotonic()
        recorder.interrupt()
        self.jvm.until(sites, attached=False)
        detach = time.monotonic() - begin
        self.lab.note(build.label, f"{recorder.attached()} of libjvm.so, {len(sites)} breakpoints")
        cpu = recorder.finish().cpu - ready_cpu
        return {
            (f"{self.what}: start to all attached", MILLISECONDS): attach,
            (f"{self.what}: the same, CPU", MILLISECONDS): attach_cpu,
            (f"{self.what}: Ctrl-C to all detached", MILLISECONDS): detach,
            (f"{self.what}: Ctrl-C to its end, CPU", MILLISECONDS): cpu,
        }


# One for all cases.
jvm = functools.cache(Jvm)


def cases(lab, _):
    return [Attaching(lab, jvm(lab), [])]


def with_stacks(lab, _):
    return [Attaching(lab, jvm(lab), ["-g"])]
