"""Layout of an evaluation report in a browser: no console output, no network request, nothing wider than the window.

usage: report_browser.py DIRECTORY

DIRECTORY holds the report. Exits with 77 (skipped) if no browser is installed.
"""

import json
import pathlib
import sys

from browser import NAMES, Browser, find_browser

SKIPPED = 77
WIDTHS = {1280: 900, 840: 900, 839: 900, 390: 844}  # and heights: desktop, both sides of the layout's breakpoint, phone
MIN_TEXT_PIXELS = 10

FACTS = """(() => {
  const box = element => { const b = element.getBoundingClientRect();
    return {left: b.left + scrollX, top: b.top + scrollY, width: b.width, height: b.height}; };
  const shown = [...document.querySelectorAll('figure svg')].filter(svg => svg.getClientRects().length > 0);
  return JSON.stringify({
    inner: innerWidth,
    scroll: document.documentElement.scrollWidth,
    height: document.documentElement.scrollHeight,
    sections: [...document.querySelectorAll('section')].map(section => section.id),
    headings: document.querySelectorAll('section h2').length,
    sentences: [...document.querySelectorAll('section')].map(section => section.querySelectorAll('p').length),
    rows: [...document.querySelectorAll('section details table')].map(table => table.tBodies[0].rows.length),
    tables: [...document.querySelectorAll('.table')].map(box),
    ids: [...document.querySelectorAll('[id]')].map(element => element.id),
    plots: shown.map(svg => ({...box(svg), id: svg.closest('section').id,
      named: svg.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id)?.textContent),
      texts: [...svg.querySelectorAll('text')].map(text => ({...box(text), text: text.textContent,
        size: parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width
          / svg.viewBox.baseVal.width}))})),
    background: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.querySelector('.plot text')).fill});
})()"""


def is_inside(inner, outer):
    slack = 1  # of a pixel: boxes of text are rounded
    return (inner["left"] >= outer["left"] - slack and inner["top"] >= outer["top"] - slack
            and inner["left"] + inner["width"] <= outer["left"] + outer["width"] + slack
            and inner["top"] + inner["height"] <= outer["top"] + outer["height"] + slack)


def overlap(one, other):
    across = min(one["left"] + one["width"], other["left"] + other["width"]) - max(one["left"], other["left"])
    down = min(one["top"] + one["height"], other["top"] + other["height"]) - max(one["top"], other["top"])
    return across > 1 and down > 3  # boxes are higher than their letters


def check_quiet(events):
    """No console output, and the page is the only file loaded."""
    for event in events:
        method, said = event["method"], json.dumps(event["params"])[:500]
        assert method not in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"), said
        if method == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            assert url.startswith(("file:", "data:")), f"a request of {url}"
    files = [event for event in events if event["method"] == "Network.requestWillBeSent"
             and event["params"]["request"]["url"].startswith("file:")]
    assert len(files) == 1, f"one file is loaded, the page, not {len(files)}"


def check_texts(plot):
    for text in plot["texts"]:
        assert is_inside(text, plot), f"{plot['id']}: text beyond the plot: {text}"
        assert text["size"] >= MIN_TEXT_PIXELS, f"{plot['id']}: small text: {text}"
    for i, text in enumerate(plot["texts"]):
        for other in plot["texts"][:i]:
            assert not overlap(text, other), f"{plot['id']}: texts on each other: {text} and {other}"


def check_page(facts, width, figures):
    # A phone zooms out of what is too wide: its window then counts more pixels than it has.
    assert facts["inner"] == width, f"the page needs {facts['inner']} pixels where {width} are"
    assert facts["scroll"] <= width, f"the page is {facts['scroll']} wide where {width} are"
    assert facts["sections"] == ["figure-" + figure["id"] for figure in figures], facts["sections"]
    assert facts["headings"] == len(figures)
    assert len(facts["ids"]) == len(set(facts["ids"])), "an id occurs twice"
    page = {"left": 0, "top": 0, "width": width, "height": facts["height"]}
    assert [plot["id"] for plot in facts["plots"]] == facts["sections"], "one plot a figure is shown"
    for plot in facts["plots"]:
        assert plot["width"] >= 0.75 * min(width, 600) and plot["height"] >= 100, f"small: {plot['id']}"
        assert is_inside(plot, page), f"{plot['id']} is beyond the page"
        assert plot["named"], f"{plot['id']} has no title or description"
        check_texts(plot)
    points = [sum(len(series["points"]) for panel in figure["panels"] for series in panel["series"])
              for figure in figures]
    assert facts["rows"] == points, f"tables have {facts['rows']} rows, figures {points} points"


def facts_of(browser):
    return json.loads(browser.value_of(FACTS))


def check_width(browser, url, width, figures):
    browser.resize(width, WIDTHS[width])
    browser.prefer("light")
    browser.open(url)
    light = facts_of(browser)
    check_page(light, width, figures)
    browser.value_of("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    opened = facts_of(browser)
    check_page(opened, width, figures)
    assert all(table["width"] > 0 and table["height"] > 0 for table in opened["tables"])
    browser.prefer("dark")
    dark = facts_of(browser)
    assert dark["background"] != light["background"] and dark["ink"] != light["ink"], "no colours of a dark scheme"
    check_quiet(browser.events)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    program = find_browser()
    if program is None:
        print(f"skipped: none of {', '.join(NAMES)} is installed")
        return SKIPPED
    folder = pathlib.Path(sys.argv[1]).resolve()
    figures = json.loads((folder / "results.json").read_text(encoding="utf-8"))["figures"]
    with Browser(program) as browser:
        for width in WIDTHS:
            check_width(browser, (folder / "index.html").as_uri(), width, figures)
    print(f"{len(figures)} figures at {', '.join(map(str, WIDTHS))} px")
    return 0


if __name__ == "__main__":
    sys.exit(main())
