"""`privatemail page` in a browser: whole queries by mouse and by keyboard.

deploy/compose-test.sh runs PublishedPageTest with the page of a container.
"""

import json
import os
import pathlib
import signal
import socket
import tempfile
import unittest

import numpy as np

from browser import Browser, find_browser
from page_service import COLOURS, LOOPBACK, Page, Service, png, vectors


@unittest.skipIf(find_browser() is None, "no browser is installed")
class BrowserTest(unittest.TestCase):
    def setUp(self):
        self.browser = self.enterContext(Browser(find_browser()))

    def open_address(self, url):
        self.browser.open(url)
        self.browser.wait_for("document.getElementById('budget')?.textContent")

    def text(self, selector):
        return self.browser.value_of(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector):
        return self.browser.value_of(f"document.querySelectorAll({json.dumps(selector)}).length")

    def pick(self, path):
        self.browser.choose_file("#file", path)
        self.browser.wait_for("!document.getElementById('ask').disabled")

    def problem(self):
        self.browser.wait_for("!document.getElementById('problem').hidden")
        return self.text("#problem")

    def check_quiet(self):
        for event in self.browser.events:
            method, said = event["method"], json.dumps(event["params"])[:500]
            self.assertNotIn(method, ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"), said)
            if method == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                self.assertTrue(url.startswith((self.address, "file:", "blob:", "data:")), url)

    def ask_published(self, entry, picture, kind):
        """Asks for a picture by the page's one-time address, which works for this browser alone."""
        self.address, _ = entry.split("/open?token=")
        self.open_address(entry)
        self.browser.click("input[value=joint]")
        self.pick(picture)
        self.browser.click("#ask")
        self.browser.wait_for("!document.getElementById('answer').hidden")
        self.browser.wait_for("document.querySelectorAll('#nearest img').length == 8")
        self.assertGreaterEqual(self.text("#matches").count(kind), 4)
        self.check_quiet()
        spent = self.text("#budget")
        for url, said in ((entry, "address was used"), (entry.replace("127.0.0.1", "localhost"), "the header Host")):
            self.browser.open(url)
            self.assertIn(said, self.text("body"))
        return spent


@unittest.skipIf("PAGE_ENTRY" not in os.environ, "PAGE_ENTRY is not the one-time address of a page")
class PublishedPageTest(BrowserTest):
    def test_answers(self):
        spent = self.ask_published(os.environ["PAGE_ENTRY"], os.environ["PICTURE"], os.environ["KIND"])
        self.assertIn(os.environ["SPENT"], spent)


class PageTest(BrowserTest):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="privatemail_page_")))
        self.service = Service(self.folder)
        self.addCleanup(self.service.stop)
        super().setUp()

    def start_page(self, collection, *options):
        self.page = Page(self.service, collection, self.folder / "gallery", *options)
        self.addCleanup(self.page.stop)
        self.address = self.page.address

    def open_page(self, collection):
        self.start_page(collection)
        self.assertEqual(self.page.file.stat().st_mode & 0o777, 0o600)
        self.open_address(self.page.file.as_uri())
        self.assertFalse(self.page.file.exists(), "the redirect file is left")

    def check_quiet(self):
        super().check_quiet()
        self.assertLessEqual(self.page.peers(), LOOPBACK)

    def test_published_port(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.start_page("colours", "--published-port", str(port))
        (self.folder / "red.png").write_bytes(png(COLOURS["red"], 5))
        spent = self.ask_published(self.page.entry, self.folder / "red.png", "red/")
        self.assertIn("Epsilon 2 of 5 is spent, in 1 release;", spent)

    def test_picture_by_mouse(self):
        self.open_page("colours")
        self.assertEqual(self.count("input[name=scheme]:disabled"), 2)  # it offers neither cells nor encrypted
        (self.folder / "red.png").write_bytes(png(COLOURS["red"], 5))
        self.browser.drop("#drop", self.folder / "red.png")
        self.browser.wait_for("!document.getElementById('ask').disabled")
        self.assertEqual(self.service.charges("colours"), [])
        self.browser.click("#ask")
        self.browser.wait_for("!document.getElementById('answer').hidden")
        self.browser.wait_for("document.querySelectorAll('#nearest img').length == 8")
        self.browser.wait_for("[...document.images].every(image => image.complete && image.naturalWidth)")
        self.assertEqual(self.count("#matches img"), 8)
        self.assertGreaterEqual(self.text("#matches").count("red/"), 4)
        self.assertEqual(self.text("#nearest").count("red/"), 8)
        self.assertIn("e^2 = 7.39 times", self.text("#sentence"))
        self.assertIn("Epsilon 2 of 5 is spent, in 1 release;", self.text("#budget"))
        self.assertIn("1 such query is left", self.text("#budget"))
        # Releases to compare with are neither charged nor saved.
        self.assertEqual((self.count(".sent circle.ring"), self.count(".compared circle.ring")), (1, 2))
        self.assertEqual(self.service.charges("colours"), [2])
        self.assertEqual(self.text("#bytes-title"), f"The request: {self.service.run('explain')['bytes']} bytes")
        self.check_quiet()
        # A link out of the folder is no picture of it.
        status = "fetch('picture?id=' + encodeURIComponent({})).then(answer => {{ window.status_ = answer.status }})"
        for name, wanted in (("red/02.png", 200), ("red/99.png", 404), ("../anchors/red/01.png", 404)):
            self.browser.value_of("window.status_ = null; " + status.format(json.dumps(name)) + "; 0")
            self.browser.wait_for("window.status_ !== null")
            self.assertEqual(self.browser.value_of("window.status_"), wanted, name)

    def test_encrypted_finds_the_exact_nearest_and_spends_nothing(self):
        self.open_page("plain")
        schemes = {one: self.browser.value_of(f"document.querySelector('input[value={one}]').disabled")
                   for one in ("encrypted", "cells", "joint")}
        self.assertEqual(schemes, {"encrypted": False, "cells": True, "joint": True})
        self.assertTrue(self.browser.value_of("document.querySelector('input[value=encrypted]').checked"))
        self.assertTrue(self.browser.value_of("document.getElementById('epsilon').disabled"))
        items, queries = vectors(1200, 1)[0], vectors(5, 3)[0]
        np.save(self.folder / "queries.npy", queries)
        self.pick(self.folder / "queries.npy")
        self.browser.click("#ask")
        self.browser.wait_for("!document.getElementById('answer').hidden")
        cosines = items @ queries[0] / np.linalg.norm(items, axis=1) / np.linalg.norm(queries[0])
        shown = self.browser.value_of("[...document.querySelectorAll('#matches li')].map(one => one.innerText.trim())")
        found = [int(one.split()[0]) for one in shown]
        self.assertEqual(len(set(found)), 8)
        # Items nearer to each other than the error of a score may change places.
        np.testing.assert_allclose(cosines[found], np.sort(cosines)[:-9:-1], atol=1e-3)
        for row, said in zip(found, shown):
            self.assertAlmostEqual(float(said.split()[-1]), cosines[row], delta=2e-3)
        self.assertIn("Encrypted searches spend none.", self.text("#budget"))
        self.assertIn("ring-LWE", self.text("#sentence"))
        self.assertIn("The nearest of 1200 items", self.text("#facts"))
        self.assertEqual(self.service.charges("plain"), [])
        self.check_quiet()

    def test_nothing_is_sent_after_an_encrypted_answer_but_the_next_search(self):
        """Rule 7 of PRIVACY.md, section 9: a call that follows by itself could depend on what was decrypted."""
        self.open_page("plain")
        np.save(self.folder / "queries.npy", vectors(5, 3)[0])
        before = len(self.service.calls())
        for _ in range(3):
            self.pick(self.folder / "queries.npy")
            self.browser.click("#ask")
            self.browser.wait_for("!document.getElementById('answer').hidden")
        search = ["GetCollection", "SearchEncrypted"]
        self.assertEqual(self.service.calls()[before:], 3 * search)

    def test_nothing_else_can_be_picked_while_a_query_runs(self):
        self.open_page("colours")
        for name in ("red", "blue"):
            (self.folder / f"{name}.png").write_bytes(png(COLOURS[name], 5))
        self.pick(self.folder / "red.png")
        self.service.daemon.send_signal(signal.SIGSTOP)
        self.browser.click("#ask")
        self.browser.wait_for("document.getElementById('status').textContent == 'Asking…'")
        self.assertEqual(self.count("#file:disabled, #row:disabled, #collection:disabled, #ask:disabled"), 4)
        self.browser.drop("#drop", self.folder / "blue.png")
        self.service.daemon.send_signal(signal.SIGCONT)
        self.browser.wait_for("!document.getElementById('answer').hidden")
        self.assertTrue(self.text("#picked").startswith("red.png"))
        self.assertIn("read as red", self.text("#releases"))
        self.browser.wait_for("!document.getElementById('file').disabled")
        self.pick(self.folder / "blue.png")

    def test_vectors_by_keyboard_until_the_budget_is_exhausted(self):
        self.open_page("things")
        rows, _ = vectors(1200, 1)
        np.save(self.folder / "queries.npy", rows[:5])
        self.pick(self.folder / "queries.npy")
        self.browser.value_of("document.activeElement.blur(); 0")
        at = []
        while "ask" not in at:
            self.browser.press("Tab", 9)
            at.append(self.browser.value_of("document.activeElement.id || document.activeElement.value"))
            self.assertLess(len(at), 20, at)
            if at[-1] == "row":
                self.browser.press("ArrowUp", 38)
                self.browser.press("Enter", 13, "\r")
                self.browser.wait_for("document.getElementById('picked').textContent.includes('row 1')")
            if at[-1] == "joint":  # the default where encrypted is not offered
                self.browser.press("ArrowUp", 38)
                self.assertTrue(self.browser.value_of("document.querySelector('input[value=cells]').checked"))
            if at[-1] == "epsilon":
                before = self.text("#expect")
                self.browser.press("ArrowRight", 39)
                self.assertEqual(self.text("#epsilon-value"), "2.8")
                self.assertNotEqual(self.text("#expect"), before)
                self.browser.wait_for("!document.getElementById('ask').disabled")
        self.assertEqual(at, ["collection", "file", "row", "joint", "epsilon", "payloads", "ask"])
        self.browser.press(" ", 32, " ")
        self.browser.wait_for("!document.getElementById('answer').hidden")
        self.assertEqual(self.browser.value_of("document.activeElement.id"), "answer-title")
        self.assertEqual(self.count("#matches li"), 8)
        self.assertEqual((self.count(".sent .asked"), self.count(".compared .asked")), (1, 2))
        self.browser.wait_for("document.getElementById('budget').textContent.includes('0 such queries are left')")
        self.check_quiet()
        self.browser.click("#ask")
        self.assertIn("RESOURCE_EXHAUSTED", self.problem())
        self.assertEqual(self.service.charges("things"), [2.8])
