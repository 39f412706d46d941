"""Loads a page in Chromium, uses it as a reader does, and prints what was seen as JSON: `browser.py PAGE`.

Chromium is driven over pipes (`--remote-debugging-pipe`): messages of the DevTools protocol, each with a NUL after it.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

# What the page shows, and what becomes of it when it is used. Ends when the search, which waits for further letters, has run.
USE = """(async () => {
  const values = (rows, column) => rows.map((row) => Number(row.cells[column].dataset.v));
  const table = document.querySelector("table.data.probes");
  const column = 1, heading = table.querySelectorAll("thead th")[column].querySelector("button");
  const sorted = [];
  for (let click = 0; click < 2; click++) {
    heading.click();
    sorted.push(values([...table.tBodies[0].rows], column));
  }
  const field = document.querySelector("#find input");
  const name = table.tBodies[0].rows[0].cells[0].textContent;
  field.value = name;
  field.dispatchEvent(new Event("input"));
  await new Promise((done) => setTimeout(done, 500));
  const rows = [...document.querySelectorAll("table[data-sort] tbody tr")];
  const text = (hidden) => rows.filter((row) => row.hidden === hidden).map((row) => row.textContent);
  const shown = text(false), hidden = text(true);
  const said = document.querySelector("#find output").textContent;
  field.value = "";
  field.dispatchEvent(new Event("input"));
  await new Promise((done) => setTimeout(done, 500));
  const frames = [...document.querySelectorAll("svg.flame > svg")];
  const narrow = frames.find((frame) => parseFloat(frame.getAttribute("width")) < 60);
  narrow?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  return {
    sorted, search: { name, shown, hidden, said },
    zoomed: narrow ? narrow.getAttribute("width") : null,
  };
})()"""


# What is wrong on a narrow screen: what is beyond its right edge or cut off there, apart from what is closed, and labels of a heat map that are the same.
NARROW = """(() => {
  const faults = [];
  const isShown = (element) => element.checkVisibility();
  for (const element of document.querySelectorAll("main *, header *, nav *")) {
    const box = element.getBoundingClientRect();
    if (!element.closest("svg") && isShown(element) && box.width > 0 && box.right > innerWidth + 0.5) {
      faults.push(`${element.tagName}.${element.className} ends at ${box.right}: ${element.textContent.slice(0, 60)}`);
    }
  }
  for (const figure of document.querySelectorAll("figure.heat")) {
    const labels = [...figure.querySelectorAll("tr:not(.times) th")];
    const texts = labels.map((label) => label.textContent);
    if (new Set(texts).size < texts.length) {
      faults.push(`labels that are the same: ${texts}`);
    }
    for (const label of labels.filter((label) => label.scrollWidth > label.clientWidth + 1)) {
      faults.push(`a label that is cut off: ${label.textContent}`);
    }
  }
  return faults;
})()"""


class Browser:
    """A browser with one page."""

    def __init__(self, directory):
        to_browser, self.requests = os.pipe()
        self.answers, from_browser = os.pipe()
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command.append(f"--user-data-dir={directory}")

        def pipes():
            # Both may be 3 or 4 themselves.
            to, back = os.dup(to_browser), os.dup(from_browser)
            os.dup2(to, 3)
            os.dup2(back, 4)

        with open(f"{directory}/errors", "wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                preexec_fn=pipes,
                pass_fds=(3, 4, to_browser, from_browser),
                # A browser that is killed leaves its temporary files.
                env={**os.environ, "TMPDIR": str(directory)},
                start_new_session=True,
            )
        os.close(to_browser)
        os.close(from_browser)
        self.count = 0
        self.session = None
        self.waiting = b""
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def message(self):
        """The next message."""
        while b"\0" not in self.waiting:
            more = os.read(self.answers, 1 << 16)
            if not more:
                sys.exit(f"Chromium ended with status {self.process.wait()}")
            self.waiting += more
        message, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        """The result of a method; events before it are kept."""
        self.count += 1
        request = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.requests, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.count:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def evaluate(self, expression):
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            sys.exit(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def of(self, method):
        """The events of a kind."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def end(self):
        """Ends it with all its processes, which write into its folder until then."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def seen(browser, page):
    """What is seen in a page."""
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    address = page.resolve().as_uri()
    browser.call("Page.navigate", url=address)
    while browser.evaluate("[location.href, document.readyState]") != [address, "complete"]:
        time.sleep(0.05)
    found = browser.evaluate(USE)
    letters = "getComputedStyle(document.body).color"
    found["letters"] = []
    for colours in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": colours}
        browser.call("Emulation.setEmulatedMedia", features=[feature])
        found["letters"].append(browser.evaluate(letters))
    telephone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **telephone)
    found["telephone"] = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    found["narrow"] = browser.evaluate(NARROW)
    found["requests"] = [event["request"]["url"] for event in browser.of("Network.requestWillBeSent")]
    found["faults"] = [event["exceptionDetails"] for event in browser.of("Runtime.exceptionThrown")]
    found["faults"] += [event["entry"] for event in browser.of("Log.entryAdded")]
    found["faults"] += [event["args"] for event in browser.of("Runtime.consoleAPICalled")]
    return found


def main():
    page = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="usdtrec-browser-") as directory:
        browser = Browser(directory)
        try:
            found = seen(browser, page)
        finally:
            browser.end()
    print(json.dumps(found))


main()
