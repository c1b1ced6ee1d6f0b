"""The report of an evaluation: its files, what its page holds, and where its plots put the points."""

import concurrent.futures
import csv
import html.parser
import io
import json
import math
import os
import pathlib
import re
import tempfile
import unittest
import unittest.mock
import warnings
import xml.etree.ElementTree

import matplotlib

from privatemail.errors import FailedPrecondition, InvalidArgument
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


def svg(name):
    return xml.etree.ElementTree.fromstring(files[name].encode())


def markers(root, colour):
    """Where the markers of a colour lie, x and y downwards; the one in the legend comes last."""
    return [(float(use.get("x")), float(use.get("y"))) for use in root.iter(SVG + "use")
            if f"stroke: {colour}" in use.get("style", "")]


def numbers_of_paths(root, style):
    """Of each path with this style the coordinates, x and y in turn."""
    return [list(map(float, re.findall(r"[\d.]+", path.get("d")))) for path in root.iter(SVG + "path")
            if style in path.get("style", "")]


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
        values = [5e-324, 1.7976931348623157e308, 1 / 3, -.1, 2**53 + 2., -0.]
        points = [Point(value, value, -INF, INF, group=-1) for value in values]
        found = written([Figure("one", "", Axis(), Axis(), [Panel("", [Series("dots", points, "scatter")])], [])], None)
        results = json.loads(found["results.json"])
        self.assertIsNone(results["verdict"])
        read = results["figures"][0]["panels"][0]["series"][0]["points"]
        self.assertEqual([float(one["x"]).hex() for one in read], [value.hex() for value in values])
        self.assertEqual(read[0], {"x": 5e-324, "y": 5e-324, "low": "-Infinity", "high": "Infinity", "group": -1})
        rows = list(csv.DictReader(io.StringIO(found["results.csv"])))
        self.assertEqual([float(row["y"]).hex() for row in rows], [value.hex() for value in values])
        self.assertEqual({row["low"] for row in rows}, {"-inf"})

    def test_csv_has_a_row_a_point(self):
        rows = list(csv.reader(io.StringIO(files["results.csv"])))
        self.assertEqual(rows[0], ["figure", "panel", "series", "x", "y", "low", "high", "group"])
        self.assertEqual(len(rows), 1 + 8 + 5 + 16)
        self.assertEqual(rows[2], ["recall", "", "gaussian", "0.1", "0.1", "0.05", "0.2", ""])
        self.assertEqual(rows[5], ["recall", "", "gap", "0.3", "", "", "", ""])
        self.assertEqual(rows[10], ["ablation", "recall", "epsilon 1", "without a graph", "0.4", "", "", ""])
        self.assertEqual(rows[-1], ["alignment", "after", "slots", "1", "1", "", "", "2"])

    def test_equal_reports_are_equal_bytes_from_any_thread_under_any_style(self):
        with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "xtick.labelsize": 30}):
            with concurrent.futures.ThreadPoolExecutor(3) as threads:
                for other in threads.map(lambda _: written(), range(3)):
                    self.assertEqual(other, files)
            self.assertEqual(matplotlib.rcParams["font.size"], 30)

    def test_an_earlier_report_is_replaced_and_other_files_stay(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "index.html").write_text("earlier")
            (folder / "notes.txt").write_text("mine")
            replaced = []
            replace = os.replace

            def note(temporary, path):
                self.assertEqual((folder / "index.html").read_text(), "earlier")
                replaced.append(os.path.basename(path))
                replace(temporary, path)

            with unittest.mock.patch("os.replace", note):
                report.write(name, "A report", ABOUT, SETTINGS, VERDICT, FIGURES)
            self.assertEqual(replaced[-1], "index.html")
            self.assertEqual(sorted(replaced), sorted(files))
            self.assertEqual({path.name for path in folder.iterdir()}, {*files, "notes.txt"})
            self.assertEqual((folder / "index.html").read_bytes().decode(), files["index.html"])
            self.assertEqual((folder / "notes.txt").read_text(), "mine")

    def test_a_path_that_cannot_be_written_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(folder + "/report/index.html")
            with self.assertRaisesRegex(FailedPrecondition, f"^directory must .*{folder}/report/index.html"):
                report.write(folder + "/report", "", [], [], None, [])
            self.assertEqual(sorted(os.listdir(folder + "/report")), ["index.html", "results.csv", "results.json"])
            with self.assertRaisesRegex(FailedPrecondition, f"^directory must .*{folder}/report/results.csv/a"):
                report.write(folder + "/report/results.csv/a", "", [], [], None, [])


class Refusals(unittest.TestCase):

    def refused(self, message, *figures):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(InvalidArgument, message) as caught:
                report.write(folder + "/report", "", [], [], None, [RECALL, *figures])
            self.assertEqual(caught.exception.field, "figures")
            self.assertFalse(os.path.exists(folder + "/report"))

    def test_ids_are_names_of_files_and_distinct(self):
        for wrong in ("", "a/b", "../a", "a.b", "a b", "ä", "a\n", "a" * 81):
            self.refused("must have ids of", Figure(wrong, "", Axis(), Axis(), [], []))
        self.refused("distinct ids, but two are recall", RECALL)

    def test_categories_of_points(self):
        def of(x, mark="line", categories=("one", "two")):
            panel = Panel("", [Series("s", [Point(x, 1)], mark)])
            return Figure("x", "", Axis(categories=categories), Axis(), [panel], [])

        for x in (2, -1, .5, NAN, INF):
            self.refused("an x below 2.*'s' of x has", of(x))
        self.refused("categories for bars, but x has none", of(0, "bars", ()))


class TextsOfThePage(unittest.TestCase):

    def test_verdict_contents_and_figures_in_this_order(self):
        texts = Page(files["index.html"]).texts
        expected = ["A report", "Cells return the most.", "Scheme", "Fidelity@8", "cells", "0.62", "gaussian", "0.21",
                    "privatemail", "--cells", "privatemail", "--epsilon", "Contents", "Recall rises with epsilon",
                    "Each part helps", "Aligned", "Figure 1", "Recall rises with epsilon", "First.", "Second.",
                    "Third.", "Table of the 8 points", "Figure 2", "Each part helps", "Bars.", "Table of the 5 points",
                    "Figure 3", "heron", "--alpha"]
        position = -1
        for text in expected:
            position = next((i for i, found in enumerate(texts) if i > position and text in found), None)
            self.assertIsNotNone(position, text)

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
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        policy = next(attributes["content"] for tag, attributes in page.elements
                      if attributes.get("http-equiv") == "Content-Security-Policy")
        self.assertEqual(policy, "default-src 'none'; style-src 'unsafe-inline'; img-src data:")
        self.assertEqual(set(re.findall(r"https?://[^\"'<> ]+|@import|url\((?!#)[^)]*\)", text)),
                         {"http://www.w3.org/2000/svg"})
        ids = page.all("id")
        self.assertEqual(len(ids), len(set(ids)))
        links = page.all("href") + page.all("src") + page.all("xlink:href")
        self.assertIn("results.csv", links)
        self.assertIn("recall.svg", links)
        for link in links:
            self.assertTrue(link in files or link == "data:," or link[0] == "#" and link[1:] in ids, link)
        for used in re.findall(r"url\(#(.*?)\)", text) + " ".join(page.all("aria-labelledby")).split():
            self.assertIn(used, ids)
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

    def test_report_without_verdict_and_figures(self):
        page = Page(written([], None)["index.html"])
        self.assertIn("A report", page.texts)
        self.assertNotIn("pre", [tag for tag, _ in page.elements])


class Plots(unittest.TestCase):

    def test_documents_say_what_they_show(self):
        for figure in FIGURES:
            root = svg(figure.id + ".svg")
            ids = {element.get("id"): element for element in root.iter() if element.get("id")}
            title, description = (ids[name].text or "" for name in root.get("aria-labelledby").split())
            self.assertEqual((title, description), (figure.title, " ".join(figure.words)))
            texts = ["".join(text.itertext()) for text in root.iter(SVG + "text")]
            names = [one.name for panel in figure.panels for one in panel.series]
            titles = [panel.title for panel in figure.panels]
            for text in [figure.title, figure.x.label, figure.y.label, *figure.x.categories, *names, *titles]:
                self.assertTrue(text in texts or not text, f"{figure.id}: {text}")
        self.assertEqual({"auk", "class 1", "heron"} - set(texts), set())

    def test_points_lie_on_their_axes(self):
        root = svg("recall.svg")
        (left, low), (middle, half), (right, high), _ = markers(root, "#0a4da2")
        self.assertLess(left, middle)
        self.assertAlmostEqual((middle - left) / (right - middle), 1, 4)  # decades
        self.assertAlmostEqual((low - half) / (half - high), 1, 4)
        start, height, end, _ = numbers_of_paths(root, "stroke: #59616c")[0]
        self.assertAlmostEqual(height, low + (high - low) * (.25 - .1) / (.9 - .1), 2)
        self.assertLess(start, left)
        self.assertGreater(end, right)

    def test_lines_have_gaps_where_nothing_was_measured(self):
        root = svg("recall.svg")
        paths = [path.get("d") for path in root.iter(SVG + "path")
                 if re.search("fill: none; stroke: #c2410c; stroke-width: 2", path.get("style", ""))]
        self.assertEqual((paths[0].count("M"), paths[0].count("L")), (2, 1))
        self.assertEqual(len(markers(root, "#c2410c")), 3 + 1)

    def test_bands_and_error_bars_have_their_ends(self):
        (x, low), _, (_, high), _ = markers(svg("recall.svg"), "#0a4da2")
        scale = (high - low) / .8
        whiskers = numbers_of_paths(svg("recall.svg"), "stroke: #0a4da2; stroke-opacity: 0.6")
        self.assertEqual(len(whiskers), 2)
        for found, expected in zip(whiskers[0], (x, low + (.05 - .1) * scale, x, low + (.2 - .1) * scale)):
            self.assertAlmostEqual(found, expected, 2)
        left, middle, right, _ = numbers_of_paths(svg("ablation.svg"), "stroke: #14181d; stroke-width: 1.5")[0]
        bar = numbers_of_paths(svg("ablation.svg"), "fill: #0a4da2")[0]
        scale = (max(bar[::2]) - min(bar[::2])) / .8
        self.assertAlmostEqual(left, min(bar[::2]) + .7 * scale, 2)
        self.assertAlmostEqual(right, min(bar[::2]) + .9 * scale, 2)
        self.assertAlmostEqual(middle, (max(bar[1::2]) + min(bar[1::2])) / 2, 2)

    def test_bars_are_as_long_as_their_values(self):
        root = svg("ablation.svg")
        bars = numbers_of_paths(root, "fill: #0a4da2")
        extents = [(max(bar[::2]) - min(bar[::2]), min(bar[1::2])) for bar in bars]
        lengths = [length for length, _ in extents]
        self.assertAlmostEqual(lengths[0] / lengths[1], 2, 3)
        self.assertAlmostEqual(lengths[0] / lengths[2], 4, 3)
        self.assertLess(extents[0][1], extents[1][1])  # the first category is at the top
        texts = ["".join(text.itertext()) for text in root.iter(SVG + "text")]
        self.assertEqual([texts.count(value) for value in ("0.8", "0.4", "0.2")], [3, 3, 3])  # at two ticks and a bar

    def test_values_without_a_place_are_left_out(self):
        odd = (NAN, INF, -INF, 0, -1, 5e-324, 1e-300, 1e300, 1.7e308, 2)
        categories = ("one", "two")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for mark in ("line", "reference", "scatter", "bars"):
                for logarithmic in (False, True):
                    for axis in (Axis("x", logarithmic), Axis(categories=categories)):
                        if mark == "bars" and not axis.categories:
                            continue
                        x = (lambda value: 1) if axis.categories else float
                        points = [Point(x(a), b, c, c) for a in odd for b in odd for c in (NAN, INF, -1, 0, 1e300)]
                        series = [Series("s", [one], mark) for one in points[::30]] + [Series("all", points, mark)]
                        y = Axis("y", logarithmic, low=1 if mark == "line" else None)
                        panels = [Panel("", series[:-1]), Panel("", series[-1:])]
                        report._draw(Figure("a", "", axis, y, panels, []), 920)
            panel = Panel("", [Series("no glyph in this font: 日本", [Point(0, NAN)])])
            text, _ = report._draw(Figure("a", "", Axis(), Axis(), [panel], []), 920)
        self.assertIn("no values", text)


if __name__ == "__main__":
    unittest.main()
