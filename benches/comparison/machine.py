"""The machine: what it has, and what it is."""

import os
import pathlib
import platform
import shutil

JVM = pathlib.Path("/usr/lib/jvm/java-17-openjdk-amd64")
TOOLS = ["gcc", "git", "readelf", "tar"]


def missing():
    """What a comparison needs and this machine does not have."""
    needs = [tool for tool in TOOLS if not shutil.which(tool)]
    if os.geteuid() != 0:
        needs.append("root's rights")
    if not (JVM / "lib/server/libjvm.so").exists():
        needs.append(f"OpenJDK 17 in {JVM}")
    return needs


def load():
    return " ".join(f"{average:.1f}" for average in os.getloadavg())


def describe():
    """CPUs, kernel and load, in one sentence."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(": ")[1] for line in lines if line.startswith("model name")), "unknown CPU")
    return f"{os.cpu_count()} CPUs ({model}); Linux {platform.release()}; load {load()}."
