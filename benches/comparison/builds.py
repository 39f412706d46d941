"""The two builds: programs that are there, or commits that are built."""

import dataclasses
import os
import pathlib
import shutil
import sys

from .lab import ROOT, Lab
from .process import Failed, Process

KEPT = ROOT / "target/compare"


@dataclasses.dataclass
class Build:
    """A program, which has a home and a build-id cache of its own in the lab."""

    label: str
    program: pathlib.Path
    lab: Lab

    def file(self, name):
        """A file in its home."""
        home = self.lab.path / self.label
        home.mkdir(exist_ok=True)
        return home / name

    def environment(self):
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return inherited | {"HOME": str(self.file("")), "PERF_BUILDID_DIR": str(self.file("cache"))}

    def start(self, *arguments, **options):
        return Process(self.lab, [self.program, *arguments], environment=self.environment(), **options)

    def run(self, *arguments):
        """Runs it to its end, its output thrown away; its CPU time in seconds."""
        return self.start(*arguments).finish()

    def output(self, *arguments):
        """What it prints."""
        return self.lab.output([self.program, *arguments], environment=self.environment())


def find(name, label, lab):
    """The build of a path or of a commit."""
    program = pathlib.Path(name)
    if not program.is_file():
        program = of_commit(name, label, lab)
    # A copy, so that it stays the same when somebody builds meanwhile.
    copy = lab.path / f"usdtrec-{label}"
    shutil.copy(program, copy)
    return Build(label, copy, lab)


def of_commit(name, label, lab):
    git = ["git", "-C", ROOT]
    try:
        commit = lab.output([*git, "rev-parse", "--verify", f"{name}^{{commit}}"]).strip()
    except Failed as failed:
        raise Failed(f"{label}: expected a program or a commit, found {name!r}: {failed}") from None
    program = KEPT / commit
    if not program.exists():
        print(f"benches/compare: building {label}, {commit}", file=sys.stderr)
        # Sources of a path of their own: cargo goes by times, which are those of the commit.
        source = KEPT / f"source-{commit}"
        source.mkdir(parents=True, exist_ok=True)
        try:
            archive = lab.path / "source.tar"
            lab.run([*git, "archive", "-o", archive, commit])
            lab.run(["tar", "-C", source, "-xf", archive])
            build(source, program, lab)
        finally:
            shutil.rmtree(source)
    return program


def build(source, program, lab):
    manifest = source / "Cargo.toml"
    command = ["cargo", "build", "--release", "--locked", "--bin", "usdtrec", "--features", "parquet"]
    command += ["--manifest-path", manifest]
    environment = os.environ | {"CARGO_TARGET_DIR": str(KEPT / "build")}
    Process(lab, command, environment=environment).finish(patience=None)
    # Under its name when it is whole.
    part = program.with_suffix(".part")
    shutil.copy(KEPT / "build/release/usdtrec", part)
    part.rename(program)
