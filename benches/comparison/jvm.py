"""A running JVM whose libjvm.so nobody else maps, and the sites of its probes."""

import os
import re
import shutil
import subprocess
import time

from .machine import JVM
from .process import PATIENCE, Failed, Process

LOCATION = re.compile(r"Location: 0x([0-9a-f]+)")
# Waits for the end of its standard input.
PROGRAM = """
class Waiting {
    public static void main(String[] arguments) throws Exception {
        System.err.println("waiting");
        System.in.read();
    }
}
"""


class Jvm:
    """Uses few threads and little memory, and hits next to no probes while it waits."""

    def __init__(self, lab):
        java = self.home(lab.path / "jvm")
        source = lab.path / "Waiting.java"
        source.write_text(PROGRAM)
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m"]
        self.process = Process(lab, [java, *options, source], stdin=subprocess.PIPE)
        self.process.until_said("waiting")
        self.pid = self.process.pid
        self.memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        self.sites = self.addresses(lab)
        self.originals = {site: self.byte(site) for site in self.sites}

    def home(self, home):
        """A home of Java with copies of what has probes or is found by its path, and links to the rest."""
        for folder in "bin", "lib/server":
            (home / folder).mkdir(parents=True)
        for file in "bin/java", "lib/server/libjvm.so":
            shutil.copy(JVM / file, home / file)
        for folder in "", "lib", "lib/server":
            for file in (JVM / folder).iterdir():
                link = home / folder / file.name
                if not link.exists():
                    link.symlink_to(file.resolve())
        self.library = home / "lib/server/libjvm.so"
        return home / "bin/java"

    def addresses(self, lab):
        """Where the sites are in the process."""
        with open(f"/proc/{self.pid}/maps") as maps:
            first = next(line for line in maps if line.endswith(f"{self.library}\n"))
        start = int(first.split("-")[0], 16)
        notes = lab.output(["readelf", "-n", self.library])
        return sorted({start + int(location, 16) for location in LOCATION.findall(notes)})

    def byte(self, site):
        return os.pread(self.memory, 1, site)

    def is_attached(self, site):
        return self.byte(site) != self.originals[site]

    def attached_sites(self):
        """The sites that are breakpoints now."""
        return [site for site in self.sites if self.is_attached(site)]

    def until(self, sites, attached):
        """Waits until all of these sites are breakpoints, or are what they were."""
        deadline = time.monotonic() + PATIENCE
        for site in sites:
            while self.is_attached(site) != attached:
                if time.monotonic() > deadline:
                    raise Failed(f"site {site:#x} of libjvm.so: not {'attached' if attached else 'detached'} in {PATIENCE} s")
                time.sleep(0.0002)
