#!/usr/bin/env python3
"""Makes page.webp and page-narrow.webp: a recording of PostgreSQL under pgbench, exported as a page, in a browser.

Run as root, with what make.py needs, and Debian's packages chromium and webp:

    docs/pictures/page.py [PROGRAM]

PROGRAM is the usdtrec to run, target/release/usdtrec if it is left out. Figures differ from run to run, as measurements do.
"""

import pathlib
import subprocess
import sys
import tempfile

from make import HERE, SERVER, Server

EVENTS = ["query__start", "query__done", "transaction__start", "transaction__commit", "transaction__abort", "lwlock__wait__*"]
# Part of the page, size in pixels, and the reader's colours (0 is dark).
PICTURES = {"page": ("#span-2", 1200, 1150, 1), "page-narrow": ("", 390, 1150, 0)}
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def record(server, environment):
    """A trace of the server at work."""
    where = {"cwd": server.directory, "env": environment}
    subprocess.run(["usdtrec", "buildid-cache", "--add", SERVER / "postgres"], check=True, **where, **QUIET)
    events = [word for event in EVENTS for word in ("-e", f"sdt_postgresql:{event}")]
    load = server.pgbench("-n", "-c", "8", "-R", "400", "-T", "20")
    record = ["usdtrec", "record", "-a", "-g", *events, "--duration", "6s", "-o", "orders.data"]
    subprocess.run(record, check=True, **where, **QUIET)
    load.wait()


def picture(page, name, directory):
    """A picture of a part of a page. A browser's window is not as narrow as a telephone, a frame is."""
    part, width, height, colours = PICTURES[name]
    frame = directory / f"{name}.html"
    style = f"border: 0; width: {width}px; height: {height}px"
    frame.write_text(f'<body style="margin: 0"><iframe src="{page.name}{part}" style="{style}"></iframe></body>')
    shot = directory / f"{name}.png"
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={directory}/browser"]
    browser += [f"--blink-settings=preferredColorScheme={colours}", f"--window-size={max(width, 500)},{height + 100}"]
    subprocess.run([*browser, f"--screenshot={shot}", frame.as_uri()], check=True, **QUIET)
    crop = ["-crop", "0", "0", str(width), str(height)]
    subprocess.run(["cwebp", "-quiet", "-q", "75", *crop, shot, "-o", HERE / f"{name}.webp"], check=True)


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "../../target/release/usdtrec").resolve(strict=True)
    server = Server()
    try:
        with tempfile.TemporaryDirectory(prefix="usdtrec-page-") as directory:
            directory = pathlib.Path(directory)
            (directory / "usdtrec").symlink_to(program)
            environment = {"PATH": f"{directory}:/usr/bin:/bin:/sbin", "HOME": str(directory), "LANG": "C.UTF-8"}
            record(server, environment)
            page = directory / "orders.html"
            export = ["usdtrec", "export", "-i", "orders.data", "--to", "html", "-o", page]
            subprocess.run(export, check=True, cwd=server.directory, env=environment)
            for name in PICTURES:
                picture(page, name, directory)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
