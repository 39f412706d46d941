"""Reads a page of `export --to html` as a browser does, and prints what is in it as JSON: its tables with the numbers that a script sorts, heat maps, frames of
flame graphs, and everything that should not be there: tags that do not fit, handlers, styles of elements, links that lead out, a policy that allows more."""

import base64
import hashlib
import html.parser
import json
import re
import sys

VOID = {"meta", "input", "br", "link"}
LINKS = {"href", "src", "srcset", "action", "formaction", "data", "xlink:href", "poster", "background"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.faults = []
        self.policy = ""
        self.bodies = {"script": [], "style": []}
        self.section = ""
        self.heading = ""
        self.tables = []
        self.maps = []
        self.flames = []
        self.texts = []
        self.cell = None

    def attributes(self, tag, attributes):
        for name, value in attributes:
            if name.startswith("on") or name == "style":
                self.faults.append(f"{tag} has {name}={value}")
            if name in LINKS and not value.startswith("#"):
                self.faults.append(f"{tag} leads to {value}")
        if len({name for name, _ in attributes}) < len(attributes):
            self.faults.append(f"{tag} has an attribute twice")
        return dict(attributes)

    def handle_startendtag(self, tag, attributes):
        self.attributes(tag, attributes)

    def handle_starttag(self, tag, attributes):
        attributes = self.attributes(tag, attributes)
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag in VOID:
            return
        self.open.append(tag)
        if tag in self.bodies:
            self.bodies[tag].append("")
        elif tag == "section":
            self.section = attributes.get("id", "")
        elif tag in ("h2", "h3"):
            self.heading = ""
        elif tag == "figure":
            self.maps.append({"section": self.section, "from": attributes["data-from"], "step": attributes["data-step"], "rows": []})
        elif tag == "table" and "figure" not in self.open:
            self.tables.append({"section": self.section, "heading": self.heading, "class": attributes["class"], "columns": [], "rows": []})
        elif tag == "tr" and self.tables and "tbody" in self.open:
            self.tables[-1]["rows"].append([])
        elif tag in ("th", "td"):
            self.cell = {"text": "", "v": attributes.get("data-v")}
        elif tag == "svg" and "data-counts" in attributes:
            cells = [cell.split(":") for cell in attributes["data-counts"].split()]
            counts = {int(at): int(count) for at, count in cells}
            self.maps[-1]["rows"].append({"label": self.label, "until": attributes.get("data-until"), "counts": counts})
        elif tag == "svg" and "class" in attributes and attributes["class"] == "flame":
            self.flames.append({"heading": self.heading, "frames": []})
        elif tag == "svg" and "data-w" in attributes:
            place = {name: float(attributes[name].rstrip("%")) for name in ("x", "y", "width")}
            self.flames[-1]["frames"].append({"name": "", "weight": int(attributes["data-w"])} | place)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> fits nothing")
        if tag not in ("th", "td") or self.cell is None:
            return
        if "figure" in self.open:
            self.label = self.cell["text"]
        elif "thead" in self.open:
            self.tables[-1]["columns"].append(self.cell["text"])
        elif self.tables and self.tables[-1]["rows"]:
            self.tables[-1]["rows"][-1].append(self.cell)
        self.cell = None

    def handle_data(self, data):
        where = self.open[-1] if self.open else ""
        if where in self.bodies:
            self.bodies[where][-1] += data
            return
        self.texts.append(data)
        if "h2" in self.open or "h3" in self.open:
            self.heading += data
        if self.cell is not None:
            self.cell["text"] += data
        if where == "text":
            self.flames[-1]["frames"][-1]["name"] += data

    def handle_comment(self, data):
        self.faults.append(f"a comment: {data}")

    def check(self, text):
        if self.open:
            self.faults.append(f"not closed: {self.open}")
        rules = dict(rule.strip().split(" ", 1) for rule in self.policy.split(";"))
        expected = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
        for tag, bodies in self.bodies.items():
            if len(bodies) != 1:
                self.faults.append(f"{len(bodies)} of {tag}")
            digest = base64.b64encode(hashlib.sha256(bodies[0].encode()).digest()).decode()
            expected[f"{tag}-src"] = f"'sha256-{digest}'"
        if rules != expected:
            self.faults.append(f"the policy is {rules}, expected {expected}")
        hidden = re.findall("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff]", text)
        if hidden:
            self.faults.append(f"characters that cannot be seen: {hidden}")


with open(sys.argv[1], encoding="utf-8", newline="") as file:
    text = file.read()
page = Page()
page.feed(text)
page.close()
page.check(text)
found = {name: getattr(page, name) for name in ("faults", "tables", "maps", "flames")}
json.dump(found | {"text": "".join(page.texts)}, sys.stdout)
