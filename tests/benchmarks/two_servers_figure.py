#!/usr/bin/python3
"""Figure: fidelity@8 against the bytes of an answer, of searches at two operators and at one server.

usage: two_servers_figure.py BUILD_FOLDER VECTORS.npy LABELS.npy OUT.svg

Through the real programs: 500 queries, 1,500 anchors, the other rows are items; code scalar8. `privatemail plan`
chooses partition and items of one server for each epsilon and size, and the partition of lists with epsilon, by what
the server measured on its gallery. Prints the values with 95 % intervals (bootstrap over queries). Noise differs from
run to run. Needs python3-matplotlib, python3-scipy and python3-jinja2.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import matplotlib.figure
import matplotlib.style
import numpy as np

from daemons import pause
from two_servers import K, Servers, fidelities, load, nearest, rows_found

sys.path.insert(0, os.path.join(sys.argv[1], "client/python"))
# pylint: disable=wrong-import-position,protected-access
from privatemail.evaluation import report
from privatemail.evaluation.stats import band_of_scores
from privatemail.evaluation.study import Axis, Figure, Point

CELLS, LIST_ITEMS = (10, 20, 50, 100, 200), 200
LISTS, LISTS_WITH_EPSILON, EPSILONS = (1, 2, 4, 8, 16), (1, 4, 8), (1, 4, 8)
SIZES = (20_000, 50_000, 100_000, 200_000, 400_000)  # at most, of an answer of one server
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 700, 480, 44, 34, 54  # pixels, as report draws
X = Axis("kilobytes down a query, of all servers together", logarithmic=True, low=10, high=2500)
Y = Axis("fidelity@8, the share of the 8 nearest items that is found: 500 queries, 95 % intervals", low=0, high=1)
TWO, ONE, TWO_WITH_EPSILON, CLEAR = *map(report._nth, range(3)), report._style("reference", 0)


class Measurements:
    """Searches of all queries at the servers, and their scores."""

    def __init__(self, servers, folder, truth):
        self.servers, self.folder, self.truth = servers, folder, truth

    def point(self, name, answers):
        band = band_of_scores([fidelities(rows_found(answers), self.truth)], seed=1)
        down = np.mean([answer["bytes"]["down"] for answer in answers])
        print(f"{name}: {down:,.0f} bytes down, fidelity@{K} {band.mean:.4f} ({band.low:.3f} to {band.high:.3f})",
              flush=True)
        return Point(down / 1000, band.mean, band.low, band.high)

    def scores(self):
        return self.point("scores", self.servers.query(self.folder, "--mode", "scores"))

    def lists(self, count, partition, *flags):
        flags = ("--mode", "lists", "--lists", count, "--partition", partition, *flags)
        return self.point(" ".join(map(str, flags)), self.servers.query(self.folder, *flags))

    def plan(self, epsilon, size):
        """The file of the plan, and the plan."""
        file = self.folder / "plan.json"
        file.unlink(missing_ok=True)
        self.servers.client.run("plan", "things", "--epsilon", epsilon, "--max-bytes", size, "--id-bytes", 4, "--out",
                                file)
        return file, json.loads(file.read_text())

    def lists_with_epsilon(self, epsilon, list_bytes):
        """In the partition of which one list finds most."""
        partition = self.plan(epsilon, list_bytes)[1]["partition"]
        return [self.lists(count, partition, "--epsilon", epsilon) for count in LISTS_WITH_EPSILON]

    def one_server(self, epsilon, size):
        file, plan = self.plan(epsilon, size)
        done = self.servers.client.call("query", "things", "--vectors", self.folder / "queries.npy", "--rows", "all",
                                        "--plan", file)
        assert done.returncode == 0, done.stderr
        return self.point(f"one server, epsilon {epsilon}, {plan['items']} items of one of {CELLS[plan['partition']]} "
                          "cells", [json.loads(line) for line in done.stdout.splitlines()])


def measure(options):
    """Points of lists, of scores (one), and by epsilon of lists and of one server."""
    parts = load(options)
    (items, _), (queries, _) = parts[1:]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        with Servers(options.build, folder) as servers:
            servers.create(folder, parts, "--cells", ",".join(map(str, CELLS)), "--cell-code", "scalar8",
                           "--publish-quality")
            image, _, _ = servers.publish("--list-items", LIST_ITEMS, "--with-scores")
            servers.client.run("budget", "set", "things", "--epsilon", 1e6, "--delta", 0)
            begun = time.perf_counter()
            while servers.client.call("plan", "things").returncode != 0:
                pause(begun)
            of = Measurements(servers, folder, nearest(items, queries)[1])
            last = len(CELLS) - 1
            return ([of.lists(count, last) for count in LISTS], of.scores(),
                    {epsilon: of.lists_with_epsilon(epsilon, image["partitions"][last]["list_bytes"])
                     for epsilon in EPSILONS},
                    {epsilon: [of.one_server(epsilon, size) for size in SIZES] for epsilon in EPSILONS})


def draw_line(axes, points, style):
    columns = (np.array([getattr(point, name) for point in points]) for name in ("x", "y", "low", "high"))
    report._draw_line(axes, *columns, style, False, .1)


def label(axes, x, y, text, style, offset=(0, 0), **properties):
    axes.annotate(text, (x, y), offset, textcoords="offset points", color=style["color"], **properties)


def draw(lists, scores, with_epsilon, one):
    """The elements of the image."""
    with matplotlib.style.context(report._MATPLOTLIB, after_reset=True):
        image = matplotlib.figure.Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
        axes = image.add_axes((LEFT / WIDTH, BOTTOM / HEIGHT, 1 - (LEFT + 12) / WIDTH, 1 - (TOP + BOTTOM) / HEIGHT))
        axes.set_xscale("log")
        axes.minorticks_off()
        report._draw_reference(axes, np.array([X.low, X.high]), np.ones(2), CLEAR, False)
        label(axes, X.low, 1, "in the clear: 1, below .1 KB (8 ids and scores)", CLEAR, (0, 7))
        for points in one.values():
            draw_line(axes, points, ONE)
        for points in with_epsilon.values():
            draw_line(axes, points, TWO_WITH_EPSILON)
        for points in lists, [scores]:
            draw_line(axes, points, TWO)
        for lines, style in (one, ONE), (with_epsilon, TWO_WITH_EPSILON):
            for epsilon, (point, *_) in lines.items():
                label(axes, point.x, point.y, f"epsilon {epsilon}", style, (-6, -20), ha="right")
        label(axes, lists[0].x, lists[0].y, "1", TWO, (-9, -3), ha="right")
        for count, point in zip(LISTS[1:], lists[1:]):
            label(axes, point.x, point.y, f"{count}", TWO, (0, -22), ha="center")
        label(axes, scores.x, scores.y, "scores", TWO, (0, -22), ha="center")
        for y, style, lines in (
                (.85, TWO, ("two operators, scores", "or 1 to 16 lists: each", "alone learns nothing")),
                (.64, ONE, ("one server, cells:", "learns no more than", "epsilon tells")),
                (.3, TWO_WITH_EPSILON, ("two operators, 1, 4", "or 8 lists with epsilon,", "which holds even for",
                                        "both together"))):
            label(axes, 520, y, "\n".join(lines), style, va="top", weight="bold", linespacing=1.35)
        for side, axis, pixels in ("x", X, WIDTH), ("y", Y, HEIGHT):
            report._scale(axes, side, axis, pixels)
        report._write_lines(image, 0, 4, [Y.label])
        report._write_lines(image, WIDTH / 2, HEIGHT - 22, [X.label], ha="center")
        return report._elements(image)


def words(name, points):
    found = (f"{point.y:.3f} ({point.low:.3f} to {point.high:.3f}) for {point.x:.0f} KB" for point in points)
    return f"{name}: {', '.join(found)}."


def write(path, lists, scores, with_epsilon, one):
    four = lists[LISTS.index(4)]
    title = (f"Two operators find {scores.y:.4f} of the 8 nearest by scores ({scores.x:.0f} KB), {four.y:.4f} by "
             f"4 lists ({four.x:.0f} KB)")
    described = [words("Two operators, scores", [scores]),
                 words(f"Two operators, {', '.join(map(str, LISTS))} lists", lists),
                 *(words(f"Two operators, epsilon {epsilon}, {', '.join(map(str, LISTS_WITH_EPSILON))} lists", points)
                   for epsilon, points in with_epsilon.items()),
                 *(words(f"One server, cells, epsilon {epsilon}", points) for epsilon, points in one.items())]
    elements = draw(lists, scores, with_epsilon, one)
    path.write_text(report._svg(Figure("two-operators", title, X, Y, [], described), (elements, HEIGHT), WIDTH, True),
                    encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("vectors")
    parser.add_argument("labels")
    parser.add_argument("figure", type=pathlib.Path)
    options = parser.parse_args(namespace=argparse.Namespace(rows=None, anchors=1500, queries=500))
    write(options.figure, *measure(options))


if __name__ == "__main__":
    main()
