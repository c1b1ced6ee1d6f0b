"""The report of an evaluation: its files, and what its page holds."""

import csv
import html.parser
import io
import itertools
import json
import math
import pathlib
import re
import tempfile
import unittest
import warnings
import xml.etree.ElementTree

from privatemail.evaluation import report
from privatemail.evaluation.study import Axis, Figure, Panel, Point, Series, Verdict

NAN, INF = math.nan, math.inf
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"' $x$ <!-- url(#a) id=\"b\" \x1b\udcff"

RECALL = Figure("recall", "Recall rises with epsilon", Axis("epsilon", logarithmic=True),
                Axis("recall@8", low=0, high=1),
                [Panel("", [Series("gaussian", [Point(10, .9), Point(.1, .1, .05, .2), Point(1, .5, .4, .6)]),
                            Series("gap", [Point(.1, .3), Point(.3, NAN), Point(1, .3), Point(10, .3)]),
                            Series("chance", [Point(0, .25)], "reference")])], ["First.", "Second.", "Third."])
ABLATION = Figure("ablation", "Each part helps", Axis(categories=("as it is", "without a graph")), Axis("share"),
                  [Panel("recall", [Series("epsilon 1", [Point(0, .8, .7, .9), Point(1, .4)], "bars"),
                                    Series("chance", [Point(0, .1)], "reference")]),
                   Panel("fidelity", [Series("epsilon 1", [Point(0, .2), Point(1, NAN)], "bars")])], ["Bars."])
ALIGNMENT = Figure("alignment", "Aligned", Axis("first"), Axis("second"),
                   [Panel("after", [
                       Series("anchors", [Point(i % 5, i // 5, group=i % 3) for i in range(15)], "scatter"),
                       Series("slots", [Point(1, 1, group=2)], "scatter")])], [], {2: "heron", 0: "auk"})
VERDICT = Verdict("Cells return the most.", ("Scheme", "Fidelity@8"), [("cells", "0.62"), ("gaussian", "0.21")],
                  ["privatemail collection create things --cells 32", "privatemail query things --epsilon 1"])
FIGURES = [RECALL, ABLATION, ALIGNMENT]
ABOUT, SETTINGS = [("Data", "120 rows")], [("--alpha", "0.6")]


def written(figures=None, verdict=VERDICT, title="A report", about=None):
    """The files of a report as text, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report.write(folder + "/a/b", title, about or ABOUT, SETTINGS, verdict, FIGURES if figures is None else figures)
        return {path.name: path.read_bytes().decode() for path in pathlib.Path(folder, "a/b").iterdir()}


def setUpModule():
    global files  # pylint: disable=global-statement
    files = written()


class Page(html.parser.HTMLParser):
    """Elements and texts in their order; an element that is not closed properly is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open, f"<{tag}/> in HTML"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> after {self.open[-2:]}"

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "desc") and "svg" not in self.open:
            self.texts += [data.strip()] if data.strip() else []

    def all(self, attribute):
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]


class Files(unittest.TestCase):

    def test_results_hold_the_verdict_and_the_figures(self):
        results = json.loads(files["results.json"])
        self.assertEqual(results.pop("figures")[0], {
            "id": "recall", "title": "Recall rises with epsilon", "x": {"label": "epsilon", "logarithmic": True},
            "y": {"label": "recall@8", "logarithmic": False, "low": 0, "high": 1},
            "panels": [{"title": "", "series": [
                {"name": "gaussian", "mark": "line", "points": [
                    {"x": 10, "y": .9}, {"x": .1, "y": .1, "low": .05, "high": .2}, {"x": 1, "y": .5, "low": .4,
                                                                                    "high": .6}]},
                {"name": "gap", "mark": "line", "points": [{"x": .1, "y": .3}, {"x": .3}, {"x": 1, "y": .3},
                                                           {"x": 10, "y": .3}]},
                {"name": "chance", "mark": "reference", "points": [{"x": 0, "y": .25}]}]}],
            "words": ["First.", "Second.", "Third."]})
        self.assertEqual(results, {
            "format": 4, "title": "A report", "about": [["Data", "120 rows"]], "settings": [["--alpha", "0.6"]],
            "verdict": {"sentence": "Cells return the most.", "columns": ["Scheme", "Fidelity@8"],
                        "rows": [["cells", "0.62"], ["gaussian", "0.21"]],
                        "commands": ["privatemail collection create things --cells 32",
                                     "privatemail query things --epsilon 1"]}})
        _, ablation, alignment = json.loads(files["results.json"])["figures"]
        self.assertEqual(ablation["x"]["categories"], ["as it is", "without a graph"])
        self.assertEqual(alignment["class_names"], [[0, "auk"], [2, "heron"]])
        self.assertEqual([one.get("group", 0) for one in alignment["panels"][0]["series"][0]["points"]], [0, 1, 2] * 5)

    def test_numbers_keep_every_bit(self):
        dots = Series("dots", [Point(1 / 3, 1 / 3, -INF, INF, group=-1)], "scatter")
        found = written([Figure("one", "", Axis(), Axis(), [Panel("", [dots])], [])], None)
        results = json.loads(found["results.json"])
        self.assertIsNone(results["verdict"])
        self.assertEqual(results["figures"][0]["panels"][0]["series"][0]["points"],
                         [{"x": 1 / 3, "y": 1 / 3, "low": "-Infinity", "high": "Infinity", "group": -1}])
        (row,) = csv.DictReader(io.StringIO(found["results.csv"]))
        self.assertEqual((float(row["y"]), row["low"]), (1 / 3, "-inf"))

    def test_csv_has_a_row_a_point(self):
        rows = list(csv.reader(io.StringIO(files["results.csv"])))
        self.assertEqual(rows[0], ["figure", "panel", "series", "x", "y", "low", "high", "group"])
        self.assertEqual(len(rows), 1 + 8 + 5 + 16)
        self.assertEqual(rows[2], ["recall", "", "gaussian", "0.1", "0.1", "0.05", "0.2", ""])
        self.assertEqual(rows[5], ["recall", "", "gap", "0.3", "", "", "", ""])
        self.assertEqual(rows[10], ["ablation", "recall", "epsilon 1", "without a graph", "0.4", "", "", ""])
        self.assertEqual(rows[-1], ["alignment", "after", "slots", "1", "1", "", "", "2"])


class TextsOfThePage(unittest.TestCase):

    def test_tables_have_the_points(self):
        page = files["index.html"]
        rows = re.findall("<tr><td>(.*?)</td></tr>", page)
        self.assertEqual(len(rows), 8 + 5 + 16)
        cells = [re.split("</td><td[^>]*>", row) for row in rows]
        self.assertEqual(cells[1], ["gaussian", "0.1", "0.1", "0.05", "0.2"])
        self.assertEqual(cells[4], ["gap", "0.3", "–", "–", "–"])
        self.assertEqual(cells[7], ["chance", "all", "0.25", "–", "–"])
        self.assertEqual(cells[9], ["recall", "epsilon 1", "without a graph", "0.4", "–", "–"])
        self.assertEqual(cells[-1], ["slots", "1", "1", "2 heron"])

    def test_numbers_are_rounded_for_people(self):
        values = {1 / 3: "0.333333", 1234567: "1.23457×10⁶", 1e-7: "10⁻⁷", -2.5e-7: "−2.5×10⁻⁷", INF: "∞", -INF: "−∞",
                  0: "0"}
        points = [Point(0, value) for value in values]
        page = written([Figure("one", "", Axis(), Axis(), [Panel("", [Series("s", points)])], [])])["index.html"]
        self.assertEqual(re.findall('<td>s</td><td class="number">0</td><td class="number">(.*?)</td>', page),
                         list(values.values()))

    def test_page_loads_nothing_and_links_resolve(self):
        text = files["index.html"]
        page = Page(text)
        policy = next(attributes["content"] for tag, attributes in page.elements
                      if attributes.get("http-equiv") == "Content-Security-Policy")
        self.assertEqual(policy, "default-src 'none'; style-src 'unsafe-inline'; img-src data:")
        self.assertEqual(set(re.findall(r"https?://[^\"'<> ]+|@import|url\((?!#)[^)]*\)", text)),
                         {"http://www.w3.org/2000/svg"})
        ids = page.all("id")
        self.assertEqual(len(ids), len(set(ids)))
        for link in page.all("href") + page.all("src") + page.all("xlink:href"):
            self.assertTrue(link in files or link == "data:," or link[0] == "#" and link[1:] in ids, link)
        tags = [tag for tag, _ in page.elements]
        self.assertEqual((tags.count("svg"), tags.count("table"), tags.count("section")), (6, 4, 3))

    def test_text_is_text_whatever_it_says(self):
        panels = [Panel(HOSTILE, [Series(HOSTILE, [Point(0, 1)], mark)]) for mark in ("bars", "line")]
        bars = Figure("one", HOSTILE, Axis(HOSTILE, categories=(HOSTILE,)), Axis(HOSTILE), panels, [HOSTILE] * 2)
        dots = Series(HOSTILE, [Point(0, 1, group=0), Point(0, 1, group=1)], "scatter")
        verdict = Verdict(HOSTILE, (HOSTILE,), [(HOSTILE,)], [HOSTILE])
        scatter = Figure("two", "", Axis(), Axis(), [Panel("", [dots])], [], {0: HOSTILE})
        found = written([bars, scatter], verdict, HOSTILE, [(HOSTILE, HOSTILE)])
        page = Page(found["index.html"])
        self.assertFalse({"script", "img"} & {tag for tag, _ in page.elements})
        shown = HOSTILE.replace("\x1b", "\ufffd").replace("\udcff", "\ufffd")
        # Titles; verdict but command; contents; first figure: texts, head and two rows of its table; second; data.
        self.assertEqual(page.texts.count(shown), 2 + 3 + 1 + 3 + 3 + 6 + 2 + 2, page.texts)
        for name in ("one.svg", "two.svg"):
            root = xml.etree.ElementTree.fromstring(found[name].encode())
            words = " ".join("".join(text.itertext()) for text in root.iter(SVG + "text")).split()
            self.assertGreaterEqual(words.count("</title><script>alert(1)</script><img"), 1)
            self.assertIn("$x$", words)
        self.assertEqual(json.loads(found["results.json"])["title"], HOSTILE.replace("\udcff", "\ufffd"))


class Plots(unittest.TestCase):

    def test_values_without_a_place_are_left_out(self):
        odd = (NAN, INF, -INF, 0, -1, 5e-324, 1e-300, 1e300, 1.7e308, 2)
        categories = Axis(categories=("one", "two"))
        for mark, logarithmic in itertools.product(("line", "reference", "scatter", "bars"), (False, True)):
            for axis in (categories,) if mark == "bars" else (categories, Axis("x", logarithmic)):
                points = [Point(1 if axis.categories else float(a), b, c, c)
                          for a in odd for b in odd for c in (NAN, INF, -1, 0, 1e300)]
                panels = [Panel("", [Series("s", [one], mark) for one in points[::30]]),
                          Panel("", [Series("all", points, mark)])]
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    report._draw(Figure("a", "", axis, Axis("y", logarithmic), panels, []), 920)
