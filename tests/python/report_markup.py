"""Well-formedness test of an evaluation report: markup, links, and the plot of every figure.

usage: report_markup.py DIRECTORY

DIRECTORY holds the report.
"""

import html.parser
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "link", "br", "img", "input", "hr"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(html.parser.HTMLParser):
    """Collects a page's elements; fails if one is not closed properly."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.counts, self.references = [], [], [], {}, []

    def handle_starttag(self, tag, attrs):
        self.note(tag, dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open, f"<{tag}/> in HTML"
        self.note(tag, dict(attrs))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def note(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.links += [attributes[name] for name in ("href", "src", "xlink:href") if name in attributes]
        self.references += attributes.get("aria-labelledby", "").split()
        self.references += re.findall(r"url\(#([^)]+)\)", " ".join(filter(None, attributes.values())))


def check_page(text, files):
    page = Page()
    page.feed(text)
    page.close()
    assert text.startswith("<!DOCTYPE html>") and not page.open, f"left open: {page.open}"
    assert len(page.ids) == len(set(page.ids)), "an id occurs twice"
    assert not set(page.references) - set(page.ids), f"missing ids: {set(page.references) - set(page.ids)}"
    for link in page.links:
        known = link == "data:," or link in files or (link[0] == "#" and link[1:] in page.ids)
        assert known, f"a link to {link}"
    assert "script" not in page.counts
    addresses = set(re.findall(r"https?://[^\"'<> ]+|@import|url\((?!#)[^)]*\)", text))
    assert addresses == {"http://www.w3.org/2000/svg"}, addresses
    return page.counts


def check_svg(path, figure):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg" and root.get("role") == "img"
    ids = {element.get("id"): element for element in root.iter() if element.get("id")}
    title, description = (ids[name] for name in root.get("aria-labelledby").split())
    assert title.text == figure["title"] and description.text == " ".join(figure["words"])
    left, top, width, height = map(float, root.get("viewBox").split())
    for text in root.iter(SVG + "text"):
        x, y = float(text.get("x")), float(text.get("y"))
        assert left <= x <= left + width and top <= y <= top + height, f"{path}: {text.text} is outside the plot"
    texts = " ".join(text.text or "" for text in root.iter(SVG + "text"))
    for word in " ".join(figure["x"].get("categories", []) + [figure["title"], figure["y"]["label"]]).split():
        assert word in texts, f"{path}: no {word}"


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    figures = json.loads((folder / "results.json").read_text(encoding="utf-8"))["figures"]
    files = {path.name for path in folder.iterdir()}
    assert files == {"index.html", "results.csv", "results.json"} | {figure["id"] + ".svg" for figure in figures}, files
    counts = check_page((folder / "index.html").read_text(encoding="utf-8"), files)
    assert counts["svg"] == 2 * len(figures) and counts["table"] == len(figures) + 1, counts
    for figure in figures:
        check_svg(folder / f"{figure['id']}.svg", figure)
    print(f"{len(figures)} figures, {sum(counts.values())} elements")
    return 0


if __name__ == "__main__":
    sys.exit(main())
