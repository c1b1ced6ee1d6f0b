"""The report of an evaluation: a page, its plots as SVG, and all numbers as JSON and CSV."""

import contextlib
import csv
import dataclasses
import io
import json
import math
import os
import re
import textwrap
import threading
import warnings
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import jinja2
import markupsafe
import matplotlib.figure
import matplotlib.style
import numpy as np
from matplotlib import ticker
from matplotlib.lines import Line2D
from matplotlib.transforms import IdentityTransform

from privatemail.errors import FailedPrecondition, InvalidArgument, wrong
from privatemail.evaluation.study import Axis, Figure, Floats, Ints, Panel, Point, Series, Verdict

Facts = Sequence[Tuple[str, str]]
_Style = Dict[str, Any]  # properties of a Line2D

_FORMAT = 4  # of results.json

# Pixels. A plot is drawn for a width, not scaled to it, so that its text has one size.
_PAGE, _PHONE = 920, 358
_FONT, _LINE = 13, 18  # height of the letters; from one line to the next
_CHARACTER = .6 * _FONT  # mean width in DejaVu Sans, which is wider than other fonts of readers
_SAMPLE = 34  # of a legend, its width

_PAPER, _INK, _TEXT, _QUIET, _AXIS, _GRID = "#ffffff", "#14181d", "#3c434d", "#59616c", "#8a939f", "#e3e6ea"
# At least 12 apart (CIELAB) with any one kind of cone missing, with a contrast of 3:1 to the paper.
_SERIES = ("#0a4da2", "#c2410c", "#1a8f6a", "#a3318a", "#b08900", _INK, "#6c96c0")
# The same colours in a dark scheme.
_DARK = {_PAPER: "#15181d", _INK: "#f0f2f5", _TEXT: "#b9c0ca", _QUIET: "#98a1ad", _AXIS: "#707985", _GRID: "#2a2f37",
         **dict(zip(_SERIES, ("#3f86f0", "#ee6a3c", "#14b48a", "#c060b0", "#e8bd2e", "#f0f2f5", "#8cc4f0")))}
_MARKERS = "os^Dv"  # as many as have no common divisor with the colours: pairs occur late again
_DASHES = ((2, 4), (7, 4), (14, 3, 2, 3), (18, 5), (7, 3, 2, 3, 2, 3))

# Without .plot before [style]: the tree of a <use> element, as of a marker, begins at what it repeats.
_PLOT_CSS = """.plot text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",\
sans-serif!important}
.plot *{stroke-linejoin:round}
@media screen and (prefers-color-scheme:dark){
""" + "".join(f'[style*="{part}: {light}"]{{{part}:{dark}!important}}\n'
              for light, dark in _DARK.items() for part in ("fill", "stroke")) + "}\n"

_MATPLOTLIB = {
    "svg.fonttype": "none", "svg.hashsalt": "privatemail", "text.parse_math": False, "font.sans-serif": ["DejaVu Sans"],
    "font.size": _FONT, "text.color": _TEXT, "xtick.labelcolor": _TEXT, "ytick.labelcolor": _TEXT,
    "axes.edgecolor": _AXIS, "axes.facecolor": "none", "axes.linewidth": 1, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "axes.xmargin": .03, "axes.ymargin": .03,
    "grid.color": _GRID, "grid.linewidth": 1, "figure.facecolor": _PAPER, "xtick.major.size": 0, "ytick.major.size": 0,
    "xtick.major.pad": 6, "ytick.major.pad": 8, "lines.scale_dashes": False, "lines.markersize": 7,
    "lines.linewidth": 2,
}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Characters that XML or UTF-8 cannot hold; a class may have them in its name.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_DRAWING = threading.Lock()  # settings and fonts of matplotlib are global


def _number(value: float, digits: int = 6) -> str:
    """Such as "0.25" or "2.5×10⁻⁷"; a dash for NaN."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    mantissa, _, exponent = f"{value:.{digits}g}".replace("-", "−").partition("e")
    if not exponent:
        return mantissa
    power = "10" + str(int(exponent.replace("−", "-"))).translate(_SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa}×{power}"


def _wrap(text: str, pixels: float) -> List[str]:
    return textwrap.wrap(text, max(8, int(pixels / _CHARACTER)), break_long_words=False)


def _all_series(figure: Figure) -> Iterator[Tuple[Panel, Series]]:
    return ((panel, series) for panel in figure.panels for series in panel.series)


def _is_level(series: Series) -> bool:
    """Whether one point gives the height of a reference at every x."""
    return series.mark == "reference" and len(series.points) == 1


def _check(figures: Sequence[Figure]) -> None:
    ids = [figure.id for figure in figures]
    for figure in figures:
        if not re.fullmatch("[A-Za-z0-9-]{1,80}", figure.id):
            raise wrong("figures", f"must have ids of 1 to 80 letters, digits and '-', but one is {figure.id!r}")
        if ids.count(figure.id) > 1:
            raise wrong("figures", f"must have distinct ids, but two are {figure.id}")
        count = len(figure.x.categories)
        for _, series in _all_series(figure):
            if series.mark == "bars" and not count:
                raise wrong("figures", f"must have categories for bars, but {figure.id} has none")
            for point in series.points:
                if count and point.x not in range(count):
                    raise wrong("figures", f"must have an x below {count}, the number of categories, but "
                                          f"series {series.name!r} of {figure.id} has {point.x}")


# Plots.


def _nth(index: int) -> _Style:
    colour, hollow = _SERIES[index % len(_SERIES)], index // len(_SERIES) % 2
    return {"color": colour, "marker": _MARKERS[index % len(_MARKERS)], "markerfacecolor": _PAPER if hollow else colour}


def _style(mark: str, index: int) -> _Style:
    """Of the series that is the index-th of its mark in a figure."""
    if mark == "reference":
        return {"color": (_QUIET, _INK)[index % 2], "linestyle": (0, _DASHES[index % len(_DASHES)]), "linewidth": 1.5}
    if mark == "scatter":  # colours and shapes are of the groups: dots, larger rings, rings around these
        rings = {"markerfacecolor": "none", "markeredgewidth": 1.5} if index % 3 else {}
        return {"color": _QUIET, "linestyle": "none", "marker": "o", "markersize": (5, 10, 18)[index % 3], **rings}
    return _nth(index)


class _Styles:
    """Styles by name and mark, the same in every panel, and of the groups of dots."""

    def __init__(self, figure: Figure) -> None:
        self.series: Dict[Tuple[str, str], _Style] = {}
        groups = set()
        for _, series in _all_series(figure):
            index = sum(mark == series.mark for _, mark in self.series)
            self.series.setdefault((series.name, series.mark), _style(series.mark, index))
            groups |= {point.group for point in series.points if series.mark == "scatter"}
        self.groups = {group: _nth(rank) for rank, group in enumerate(sorted(groups))}

    def legend(self, figure: Figure) -> List[Tuple[str, _Style]]:
        entries = [(name, {"color": style["color"], "linewidth": 12} if mark == "bars" else style)
                   for (name, mark), style in self.series.items() if name]
        if len(self.groups) > 1:
            entries += [(figure.class_names.get(group, f"class {group}"), {**style, "linestyle": "none"})
                        for group, style in self.groups.items()]
        return entries


def _drawable(values: Iterable[float], axis: Axis, is_end: bool = False) -> Floats:
    """Values at most at the ends of the axis, NaN where there is no place. is_end: of a band, which may reach 0."""
    array = np.array(list(values), np.float64)
    least = 1e-250 if axis.logarithmic and not is_end else -1e250
    array[~((array >= least) & (array <= 1e250))] = np.nan  # beyond, limits of axes overflow
    return np.clip(array, -np.inf if axis.low is None else axis.low, np.inf if axis.high is None else axis.high)


def _draw_whiskers(axes: Any, x: Floats, low: Floats, high: Floats, lying: bool, **properties: Any) -> None:
    banded = np.isfinite(low) & np.isfinite(high)
    (axes.hlines if lying else axes.vlines)(x[banded], low[banded], high[banded], **properties)


def _draw_bars(axes: Any, middles: Floats, y: Floats, low: Floats, high: Floats, colour: str, height: float) -> None:
    axes.barh(middles, y, height, color=colour, zorder=2)
    for edge, width in ((_PAPER, 4), (_INK, 1.5)):
        _draw_whiskers(axes, middles, low, high, True, color=edge, linewidth=width, zorder=3)
    for middle, value, end in zip(middles, y, np.fmax(np.fmax(y, high), 0)):
        if np.isfinite(value):
            axes.annotate(_number(value, 3), (end, middle), (7, 0), textcoords="offset points", va="center", color=_INK)


def _draw_dots(axes: Any, x: Floats, y: Floats, groups: Ints, style: _Style, styles: _Styles) -> None:
    for group in np.unique(groups):
        of_group = {**styles.groups[group], **{name: style[name] for name in style if name not in ("color", "marker")}}
        axes.plot(x[groups == group], y[groups == group], zorder=3, **of_group)


def _draw_line(axes: Any, x: Floats, y: Floats, low: Floats, high: Floats, style: _Style, lying: bool,
               shade: float) -> None:
    axes.plot(*((y, x) if lying else (x, y)), zorder=4, **style)
    colour = style["color"]
    (axes.fill_betweenx if lying else axes.fill_between)(x, low, high, color=colour, alpha=shade, linewidth=0, zorder=2)
    _draw_whiskers(axes, x, low, high, lying, color=colour, alpha=.6, linewidth=1.3, zorder=2)


def _draw_reference(axes: Any, x: Floats, y: Floats, style: _Style, lying: bool) -> None:
    if lying:  # to the edges
        y, x = np.r_[x[:1] - .5, x, x[-1:] + .5], np.r_[y[:1], y, y[-1:]]
    axes.plot(x, y, zorder=3, **style)


def _draw_panel(axes: Any, figure: Figure, panel: Panel, styles: _Styles) -> None:
    """Categories run from top to bottom, so that there is room for their names."""
    lying = bool(figure.x.categories)
    bars, lines = (sum(series.mark == mark for series in panel.series) for mark in ("bars", "line"))
    bar = 0
    any_value = False
    for series in panel.series:
        style = styles.series[series.name, series.mark]
        x, y, low, high = (_drawable((getattr(point, name) for point in series.points), axis, name in ("low", "high"))
                           for name, axis in (("x", figure.x), ("y", figure.y), ("low", figure.y), ("high", figure.y)))
        any_value |= bool(np.isfinite(y).any())
        order = np.argsort(x)[:np.count_nonzero(np.isfinite(x))]  # NaN comes last
        if series.mark == "bars":
            _draw_bars(axes, x + .72 * ((bar + .5) / bars - .5), y, low, high, style["color"], .68 / bars)
            bar += 1
        elif series.mark == "scatter":
            _draw_dots(axes, x, y, np.array([point.group for point in series.points]), style, styles)
        elif series.mark == "line":
            _draw_line(axes, x[order], y[order], low[order], high[order], style, lying, .5 / (4 + lines))
        elif _is_level(series):
            (axes.axvline if lying else axes.axhline)(y[0], zorder=3, **style)
        else:
            _draw_reference(axes, x[order], y[order], style, lying)
    if not any_value:
        axes.text(.5, .5, "no values", transform=axes.transAxes, ha="center")


def _scale(axes: Any, side: str, axis: Axis, pixels: float) -> None:
    """Limits and ticks. side: "x" or "y" of the paper."""
    ends = [end for end in (axis.low, axis.high) if end is not None]
    axes.update_datalim([(end, end) for end in ends], updatex=side == "x", updatey=side == "y")
    axes.autoscale_view()
    drawn = getattr(axes, side + "axis")
    most = max(3, int(pixels / 60))
    locator = ticker.MaxNLocator(most, steps=[1, 2, 5, 10])
    if axis.logarithmic:
        decades = np.ptp(np.log10(drawn.get_view_interval()))
        locator = ticker.LogLocator(subs=(1, 2, 5) if 3 * decades <= most else (1,), numticks=most + 1)
    drawn.set_major_locator(locator)
    drawn.set_major_formatter(ticker.FuncFormatter(lambda value, _: _number(value)))


class _Layout:
    """Where the panels of a figure lie, in pixels from its top left corner."""

    def __init__(self, figure: Figure, width: float) -> None:
        count = max(1, len(figure.panels))
        rows = math.ceil(count / max(1, int(width / 290)))
        self.columns = math.ceil(count / rows)  # four are better as 2 + 2 than as 3 + 1
        self.categories = [_wrap(name, .28 * width) for name in figure.x.categories]
        self.lying = bool(self.categories)
        # The left edge of the first panel's plot; right of every plot is room for half a tick's text or the number at a bar's end.
        self.left = max((len(line) for name in self.categories for line in name), default=5) * _CHARACTER + 12
        self.gap = 56 if self.lying else 28
        self.width = (width - self.left) / self.columns - self.gap
        self.x, self.y = (figure.y, figure.x) if self.lying else (figure.x, figure.y)  # as on the paper
        self.x_label, self.y_label = (_wrap(axis.label, self.width + self.gap) for axis in (self.x, self.y))
        self.titles = [_wrap(panel.title, .9 * (self.width + self.gap)) for panel in figure.panels]
        self.head = _LINE * (max(map(len, self.titles), default=0) + len(self.y_label)) + 10
        self.height = min(.75 * self.width, 380)
        if self.lying:
            bars = max(sum(series.mark == "bars" for series in panel.series) for panel in figure.panels)
            self.height = len(self.categories) * (max(20 * bars, _LINE * max(map(len, self.categories))) + 14)
        self.row = self.head + self.height + 26 + _LINE * len(self.x_label) + 20
        self.total = rows * self.row

    def corner(self, index: int) -> Tuple[float, float]:
        """Left and top of the index-th plot, without the texts around it."""
        row, column = divmod(index, self.columns)
        return self.left + column * (self.width + self.gap), row * self.row + self.head


def _write_lines(image: Any, left: float, top: float, lines: Iterable[str], **properties: Any) -> None:
    # One by one: a browser then aligns each as its font needs.
    for number, line in enumerate(lines):
        bottom = image.bbox.height - top - 13 - number * _LINE
        image.text(left, bottom, line, transform=IdentityTransform(), **properties)


def _write_texts(image: Any, index: int, layout: _Layout) -> None:
    """The texts around the index-th plot, but those of ticks."""
    left, top = layout.corner(index)
    bottom, y_label_top = top + layout.height, top - 10 - _LINE * len(layout.y_label)
    title = layout.titles[index]
    _write_lines(image, left + layout.width / 2, bottom + 26, layout.x_label, ha="center")
    _write_lines(image, left, y_label_top - _LINE * len(title), title, weight="bold", color=_INK)
    if index % layout.columns:
        return
    _write_lines(image, left, y_label_top, layout.y_label)
    for place, name in enumerate(layout.categories):
        middle = top + layout.height * (place + .5) / len(layout.categories)
        _write_lines(image, left - 8, middle - _LINE * len(name) / 2, name, ha="right")


class _Legend:
    """Columns of names, each beside a sample of its style."""

    def __init__(self, entries: List[Tuple[str, _Style]], width: float) -> None:
        margin = _SAMPLE + 32  # around a name
        wrapped = [(_wrap(name, width / max(1, int(width / 300)) - margin), style) for name, style in entries]
        self.column = max((len(line) for lines, _ in wrapped for line in lines), default=0) * _CHARACTER + margin
        row_count = math.ceil(len(entries) / max(1, int(width / self.column)))
        self.rows = [wrapped[row::row_count] for row in range(row_count)]
        self.heights = [_LINE * max(len(lines) for lines, _ in row) + 3 for row in self.rows]

    def draw(self, image: Any, top: float) -> None:
        for row, height in zip(self.rows, self.heights):
            for column, (lines, style) in enumerate(row):
                left, middle = column * self.column, image.bbox.height - top - _LINE / 2
                image.add_artist(Line2D((left, left + _SAMPLE / 2, left + _SAMPLE), (middle,) * 3, markevery=[1],
                                        solid_capstyle="butt", transform=IdentityTransform(), **style))
                _write_lines(image, left + _SAMPLE + 8, top, lines)
            top += height


def _elements(image: Any) -> str:
    """The elements of an image, without the document around them."""
    drawn = io.StringIO()
    image.savefig(drawn, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    own = r"^.*?<svg.*?>|<defs>\s*<style.*?</style>\s*</defs>|</svg>\s*$|(?<=<g) id=\"[^\"]*\"|<!--.*?-->"
    return re.sub(own, "", drawn.getvalue(), flags=re.DOTALL).strip()


def _draw(figure: Figure, width: int) -> Tuple[str, float]:
    """The elements of an SVG image of a width, and its height."""
    layout, styles = _Layout(figure, width), _Styles(figure)
    legend = _Legend(styles.legend(figure), width)
    height = layout.total + sum(legend.heights) + 4
    with _DRAWING, matplotlib.style.context(_MATPLOTLIB, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the reader's browser has other fonts
        image = matplotlib.figure.Figure(figsize=(width / 72, height / 72), dpi=72)  # a point is a pixel
        for index, panel in enumerate(figure.panels):
            left, top = layout.corner(index)
            first = image.axes[0] if image.axes else None
            axes = image.add_axes((left / width, 1 - (top + layout.height) / height, layout.width / width,
                                    layout.height / height), label=str(index), sharex=first, sharey=first)
            axes.set(xscale="log" if layout.x.logarithmic else "linear",
                     yscale="log" if layout.y.logarithmic else "linear")
            axes.minorticks_off()
            axes.tick_params(labelleft=not layout.lying and index % layout.columns == 0)
            _draw_panel(axes, figure, panel, styles)
            _write_texts(image, index, layout)
        for axes in image.axes:  # they share limits: after all are drawn
            _scale(axes, "x", layout.x, layout.width)
            if layout.lying:
                axes.set(yticks=[], ylim=(len(layout.categories) - .5, -.5))
            else:
                _scale(axes, "y", layout.y, layout.height)
        legend.draw(image, layout.total)
        return _elements(image), height


def _svg(figure: Figure, drawn: Tuple[str, float], width: int, stands_alone: bool) -> str:
    """A document with the title above the plot, or an element of a page that has both the title and _PLOT_CSS."""
    elements, height = drawn
    prefix = f"plot-{figure.id}-{width}"
    elements = re.sub(r'(<[^<>]*?(?:\bid="|href="#|url\(#))', rf"\g<1>{prefix}-", elements)
    namespaces, above = 'xmlns="http://www.w3.org/2000/svg"', 0
    if stands_alone:
        namespaces += ' xmlns:xlink="http://www.w3.org/1999/xlink"'
        title = _wrap(figure.title, width)
        above = _LINE * (len(title) + 1)
        elements = "\n".join([
            f"<style>{_PLOT_CSS}</style>",
            f'<rect y="{-above}" width="{width}" height="{above}" style="fill: {_PAPER}"/>',
            *(f'<text x="0" y="{13 + _LINE * number - above}" style="font: 700 {_FONT}px sans-serif; fill: {_INK}">'
              f"{markupsafe.escape(line)}</text>" for number, line in enumerate(title)), elements])
    return f"""<svg {namespaces} class="plot" viewBox="0 {-above} {width} {height + above:.1f}" width="{width}" \
height="{height + above:.1f}" role="img" aria-labelledby="{prefix}-title {prefix}-desc">
<title id="{prefix}-title">{markupsafe.escape(figure.title)}</title>
<desc id="{prefix}-desc">{markupsafe.escape(" ".join(figure.words))}</desc>
{elements}
</svg>
"""


# Files.


def _numbers(**values: Optional[float]) -> Dict[str, Union[float, str]]:
    """As JSON can hold them: without NaN, infinities as text."""
    return {name: float(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
            for name, value in values.items() if value is not None and not math.isnan(value)}


def _axis(axis: Axis) -> Dict[str, Any]:
    return {"label": axis.label, "logarithmic": axis.logarithmic, **_numbers(low=axis.low, high=axis.high),
            **({"categories": axis.categories} if axis.categories else {})}


def _point(point: Point) -> Dict[str, Any]:
    return {**_numbers(x=point.x, y=point.y, low=point.low, high=point.high),
            **({"group": int(point.group)} if point.group else {})}


def _json(title: str, about: Facts, settings: Facts, verdict: Optional[Verdict], figures: Sequence[Figure]) -> str:
    """{"format": 4, "title": "...", "about": [["gallery", "5,000 x 128"]], "settings": [["alpha", "0.6"]],
     "verdict": VERDICT, "figures": [FIGURE]}

      VERDICT: null, or {"sentence": "...", "columns": ["..."], "rows": [["..."]], "commands": ["..."]}
      FIGURE: {"id": "recall", "title": "...", "x": AXIS, "y": AXIS,
        "panels": [{"title": "...", "series": [{"name": "...", "mark": "line", "points": [POINT]}]}],
        "words": ["..."], "class_names": [[3, "lime"]]}
      AXIS: {"label": "epsilon", "logarithmic": true, "low": 1, "high": 10, "categories": ["..."]}
      POINT: {"x": 1, "y": 0.5, "low": 0.4, "high": 0.6, "group": 3}

    Absent: NaN, a group of 0, empty lists of categories and class names. Infinities are the texts "Infinity" and
    "-Infinity"; other numbers have enough digits to restore every bit.
    """
    listed: List[Dict[str, Any]] = [{
        "id": figure.id, "title": figure.title, "x": _axis(figure.x), "y": _axis(figure.y),
        "panels": [{"title": panel.title,
                    "series": [{"name": series.name, "mark": series.mark, "points": list(map(_point, series.points))}
                               for series in panel.series]} for panel in figure.panels],
        "words": figure.words,
        **({"class_names": sorted((int(group), name) for group, name in figure.class_names.items())}
           if figure.class_names else {})} for figure in figures]
    return json.dumps({"format": _FORMAT, "title": title, "about": about, "settings": settings,
                       "verdict": dataclasses.asdict(verdict) if verdict else None, "figures": listed},
                      ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def _csv(figures: Sequence[Figure]) -> str:
    """A row a point. x: of categories the name. Empty: NaN, and the group of what is not a scattered dot."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("figure", "panel", "series", "x", "y", "low", "high", "group"))
    for figure in figures:
        for panel, series in _all_series(figure):
            for point in series.points:
                x = figure.x.categories[int(point.x)] if figure.x.categories else point.x
                numbers = ("" if value != value else value for value in (x, point.y, point.low, point.high))
                group = point.group if series.mark == "scatter" else ""
                writer.writerow((figure.id, panel.title, series.name, *numbers, group))
    return lines.getvalue()


def _page(title: str, about: Facts, settings: Facts, verdict: Optional[Verdict], figures: Sequence[Figure],
          plots: Sequence[Tuple[str, str]]) -> str:
    """plots: of each figure two elements, for wide and for narrow windows."""
    templates = jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.dirname(__file__)), autoescape=True,
                                   undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters["number"] = _number
    templates.tests.update(level=_is_level, nan=math.isnan)
    return templates.get_template("report.html.j2").render(
        title=title, about=about, settings=settings, verdict=verdict, figures=list(zip(figures, plots)),
        plot_css=_PLOT_CSS) + "\n"


def _replace_file(path: str, text: str) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            file.write(_UNWRITABLE.sub("\ufffd", text))
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise FailedPrecondition(f"directory must be writable, but {path} is not: {error.strerror}") from error


def write(directory: str, title: str, about: Facts, settings: Facts, verdict: Optional[Verdict],
          figures: List[Figure]) -> None:
    """Writes index.html, results.json, results.csv and one <id>.svg a figure, each atomically, index.html last.

    about: the data, such as ("gallery", "5,000 x 128"). settings: what reproduces the figures. Equal arguments give
    equal files. InvalidArgument, before anything is written: ids that are no names or not distinct, bars without
    categories, an x that is no category. FailedPrecondition: a file that cannot be written.
    """
    _check(figures)
    drawn = [(figure, _draw(figure, _PAGE), _draw(figure, _PHONE)) for figure in figures]
    files = {f"{figure.id}.svg": '<?xml version="1.0" encoding="UTF-8"?>\n' + _svg(figure, page, _PAGE, True)
             for figure, page, _ in drawn}
    plots = [(_svg(figure, page, _PAGE, False), _svg(figure, phone, _PHONE, False)) for figure, page, phone in drawn]
    files["results.json"] = _json(title, about, settings, verdict, figures)
    files["results.csv"] = _csv(figures)
    files["index.html"] = _page(title, about, settings, verdict, figures, plots)
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise FailedPrecondition(f"directory must be a directory, but {directory} cannot be made: "
                                 f"{error.strerror}") from error
    for name, text in files.items():
        _replace_file(os.path.join(directory, name), text)
