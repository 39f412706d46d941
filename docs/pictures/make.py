#!/usr/bin/env python3
"""Makes the pictures of this directory from real runs: records PostgreSQL under pgbench and draws what the terminal shows.

Run as root, with Python 3.11 or later and PostgreSQL 15 (Debian's paths), after `cargo build --release`:

    docs/pictures/make.py [PROGRAM]

PROGRAM is the usdtrec to run, target/release/usdtrec if it is left out. The server is private: it runs in a temporary directory, as the
user postgres, and is stopped and removed at the end. Figures differ from run to run, as measurements do.
"""

import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
SERVER = pathlib.Path("/usr/lib/postgresql/15/bin")
COLUMNS = 80
# A command is run by sh. What follows "  #" is done meanwhile.
PICTURES = {
    "queries": [
        "sudo usdtrec record -a -e 'sdt_postgresql:query__*' --duration 4s  # pgbench",
        "usdtrec report --span query --by query:shape --order p99 --top 5",
    ],
    "histogram": ["usdtrec report --hist span:query"],
    "heatmap": ["usdtrec report --heatmap span:query"],
}

# The drawing: a cell of the terminal in pixels, and the space around.
WIDTH, HEIGHT, MARGIN = 8, 18, 16
STYLE = """
  svg { --ground: #ffffff; --text: #1f2328; --faint: #59636e; --edge: #d1d9e0; --bar: #0969da }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #0d1117; --text: #e6edf3; --faint: #9198a1; --edge: #3d444d; --bar: #4493f8 }
  }
  text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--text); white-space: pre }
  .ground { fill: var(--ground); stroke: var(--edge) }
  .faint { fill: var(--faint) }
  .bold { font-weight: bold }
  .bar { fill: var(--bar) }
"""
# Characters that are drawn and not written: the part of the cell's width and the darkness.
BLOCKS = {chr(0x2590 - eighths): (eighths / 8, 1) for eighths in range(1, 9)}
BLOCKS |= {"░": (1, 0.25), "▒": (1, 0.5), "▓": (1, 0.75)}


def as_postgres(*words):
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *map(str, words)]


class Server:
    """A PostgreSQL server on a socket in a directory of its own."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="usdtrec-picture-"))
        shutil.chown(self.directory, "postgres")
        data = self.directory / "data"
        quiet = {"cwd": self.directory, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(as_postgres(SERVER / "initdb", "-D", data, "-A", "trust", "--no-sync"), check=True, **quiet)
        settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off"]
        self.process = subprocess.Popen(as_postgres(SERVER / "postgres", "-D", data, "-k", self.directory, *settings), **quiet)
        while not (self.directory / ".s.PGSQL.5432").exists():
            if self.process.poll() is not None:
                sys.exit("the server does not start")
            time.sleep(0.05)
        self.pgbench("-i", "-q", "-s", "5").wait()

    def pgbench(self, *words):
        quiet = {"cwd": self.directory, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(as_postgres(SERVER / "pgbench", "-h", self.directory, *words, "postgres"), **quiet)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        shutil.rmtree(self.directory)


def run_in_terminal(command, environment, directory, meanwhile=None):
    """What a command writes to a terminal of 80 columns; ends this script if it fails."""
    ours, its = pty.openpty()
    ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    process = subprocess.Popen(["sh", "-c", command], stdin=its, stdout=its, stderr=its, cwd=directory, env=environment)
    os.close(its)
    other = meanwhile() if meanwhile else None
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # EIO: the terminal has no writer any more
            break
        if not part:
            break
        output += part
    os.close(ours)
    if other:
        other.wait()
    if process.wait() != 0:
        sys.exit(f"{command}: status {process.returncode}\n{output.decode()}")
    return output.decode()


def screen(output):
    """Lines of cells, each a character and a style, of what was written to a terminal."""
    lines, row, column, style = [], [], 0, ""
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", output):
        if part == "\n":
            lines.append(row)
            row, column = [], 0
        elif part == "\r":
            column = 0
        elif part.endswith("m") and len(part) > 1:
            style = {"1": "bold", "2": "faint"}.get(part[2:-1], "")
        elif part.endswith("K") and len(part) > 1:
            del row[0 if part[2:-1] == "2" else column :]
        elif len(part) == 1:
            if column == COLUMNS:
                lines.append(row)
                row, column = [], 0
            row.extend([(" ", "")] * (column - len(row)))
            row[column : column + 1] = [(part, style)]
            column += 1
    return [*lines, row] if row else lines


def draw(rows):
    """An SVG of lines of cells. Each word has its place and its width, so that every font gives the same columns."""
    width, height = COLUMNS * WIDTH + 2 * MARGIN, len(rows) * HEIGHT + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">']
    parts.append(f"<style>{STYLE}</style>")
    parts.append(f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>')
    for line, row in enumerate(rows):
        top = MARGIN + line * HEIGHT
        column = 0
        while column < len(row):
            character, style = row[column]
            x = MARGIN + column * WIDTH
            if character in BLOCKS:
                part, darkness = BLOCKS[character]
                opacity = "" if darkness == 1 else f' opacity="{darkness}"'
                parts.append(f'<rect class="bar" x="{x}" y="{top}" width="{part * WIDTH:g}" height="{HEIGHT - 2}"{opacity}/>')
                column += 1
                continue
            end = column
            while end < len(row) and row[end][0] not in BLOCKS and row[end][0] != " " and row[end][1] == style:
                end += 1
            if end > column:
                text = escape("".join(cell for cell, _ in row[column:end]))
                name = f' class="{style}"' if style else ""
                size = (end - column) * WIDTH
                parts.append(f'<text{name} x="{x}" y="{top + 13}" textLength="{size}" lengthAdjust="spacingAndGlyphs">{text}</text>')
            column = max(end, column + 1)
    return "\n".join([*parts, "</svg>", ""])


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "../../target/release/usdtrec").resolve(strict=True)
    server = Server()
    try:
        home = server.directory / "home"
        programs = server.directory / "programs"
        home.mkdir()
        programs.mkdir()
        (programs / "usdtrec").symlink_to(program)
        environment = {"PATH": f"{programs}:/usr/bin:/bin:/sbin", "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        run_in_terminal(f"usdtrec buildid-cache --add {SERVER}/postgres", environment, home)
        for name, commands in PICTURES.items():
            rows = []
            for command in commands:
                command, _, load = command.partition("  # ")
                meanwhile = (lambda: server.pgbench("-n", "-c", "4", "-R", "250", "-T", "4")) if load else None
                output = run_in_terminal(command.removeprefix("sudo "), environment, home, meanwhile)
                rows += [[(character, "bold") for character in f"$ {command}"], *screen(output), []]
            (HERE / f"{name}.svg").write_text(draw(rows[:-1]))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
