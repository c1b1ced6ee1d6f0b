"""`privatemail page` in a browser: whole searches by mouse and by keyboard.

deploy/compose-test.sh runs PublishedPageTest with the page of a container.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import numpy as np

from browser import Browser, find_browser
from page_service import COLOURS, LOOPBACK, Page, Service, png, vectors

SEARCH = ["GetCollection", "SearchEncrypted"]


def axe():
    """The checks of axe-core, which npm installs into the build folder."""
    folder = pathlib.Path(os.environ["BUILD"], "axe")
    script = folder / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        shutil.copytree(pathlib.Path(__file__).parent / "axe", folder, dirs_exist_ok=True)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-fund"], cwd=folder, check=True)
    return script.read_text(encoding="utf-8")


@unittest.skipIf(find_browser() is None, "no browser is installed")
class BrowserTest(unittest.TestCase):
    def setUp(self):
        self.browser = self.enterContext(Browser(find_browser()))

    def wait_for_state(self, state):
        self.browser.wait_for(f"document.getElementById('ask')?.classList.contains('{state}')")

    def open_address(self, url, state="empty"):
        self.browser.open(url)
        self.wait_for_state(state)

    def text(self, selector):
        return self.browser.value_of(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector):
        return self.browser.value_of(f"document.querySelectorAll({json.dumps(selector)}).length")

    def focused(self):
        return self.browser.value_of("document.activeElement.id || document.activeElement.className")

    def wait_for_choice(self):
        self.wait_for_state("chosen")
        self.browser.wait_for("!document.getElementById('search').disabled")

    def pick(self, path):
        self.browser.choose_file("#file", path)
        self.wait_for_choice()

    def search(self, button="#search"):
        self.browser.click(button)
        self.wait_for_state("results")

    def search_another_way(self, name):
        if self.count("#other[open]") == 0:
            self.browser.click("#other summary")
        self.search(f"[data-way={name}]")

    def check_quiet(self):
        for event in self.browser.events:
            method, said = event["method"], json.dumps(event["params"])[:500]
            self.assertNotIn(method, ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"), said)
            if method == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                self.assertTrue(url.startswith((self.address, "file:", "blob:", "data:")), url)

    def search_published(self, entry, picture, kind):
        """Searches by class with the page's one-time address, which works for this browser alone."""
        self.address, _ = entry.split("/open?token=")
        self.open_address(entry)
        self.pick(picture)
        if self.count("[data-way=joint]"):
            self.search_another_way("joint")
        else:
            self.search()
        self.browser.wait_for("[...document.images].every(image => !image.src || image.complete && image.naturalWidth)")
        self.assertEqual(self.count("#grid img"), 8)
        self.assertGreaterEqual(self.count(f"#grid img[src^='picture?id={kind.replace('/', '%2F')}']"), 4)
        self.check_quiet()
        self.browser.click("#operators")
        self.browser.wait_for("document.getElementById('budget')?.innerText")
        spent = self.text("#budget")
        for url, said in ((entry, "address was used"), (entry.replace("127.0.0.1", "localhost"), "the header Host")):
            self.browser.open(url)
            self.assertIn(said, self.text("body"))
        return spent


@unittest.skipIf("PAGE_ENTRY" not in os.environ, "PAGE_ENTRY is not the one-time address of a page")
class PublishedPageTest(BrowserTest):
    def test_answers(self):
        spent = self.search_published(os.environ["PAGE_ENTRY"], os.environ["PICTURE"], os.environ["KIND"])
        self.assertIn(os.environ["SPENT"], spent)


class PageTest(BrowserTest):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="privatemail_page_")))
        self.service = Service(self.folder)
        self.addCleanup(self.service.stop)
        super().setUp()
        (self.folder / "red.png").write_bytes(png(COLOURS["red"], 5))
        np.save(self.folder / "queries.npy", vectors(5, 3)[0])

    def connect(self, key):
        import privatemail as pm  # PublishedPageTest runs where it is not built

        return pm.connect(self.service.address, ca_file=self.folder / "data/tls/server.crt",
                          key_file=self.folder / key, state=self.folder / "state")

    def start_page(self, collection, *options, pictures="gallery"):
        self.page = Page(self.service, collection, pictures and self.folder / pictures, *options)
        self.addCleanup(self.page.stop)
        self.address = self.page.address

    def open_page(self, collection, *options, **more):
        self.start_page(collection, *options, **more)
        self.assertEqual(self.page.file.stat().st_mode & 0o777, 0o600)
        self.open_address(self.page.file.as_uri())
        self.assertFalse(self.page.file.exists(), "the redirect file is left")
        self.opened = len(self.service.calls())

    def calls(self):
        return self.service.calls()[self.opened:]

    def check_quiet(self):
        super().check_quiet()
        self.assertLessEqual(self.page.peers(), LOOPBACK)

    def test_published_port(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.start_page("colours", "--published-port", str(port))
        spent = self.search_published(self.page.entry, self.folder / "red.png", "red/")
        self.assertIn("Epsilon 2 of 20 is spent, in 1 release;", spent)

    def test_sample_enlarge_search_from_a_match_and_reload(self):
        self.open_page("colours")
        self.assertEqual(self.count("#samples img"), 3)
        self.browser.click("#samples li:nth-child(3) button")
        self.wait_for_choice()
        self.assertEqual(self.calls(), [])
        self.search()
        self.browser.wait_for("[...document.images].every(image => !image.src || image.complete && image.naturalWidth)")
        self.assertEqual(self.count("#grid img"), 8)
        self.assertIn("The closest 8 of 84.", self.text("#summary"))
        self.assertEqual(self.focused(), "found")
        # Every byte that was sent is drawn.
        self.browser.click("#how summary")
        self.browser.wait_for("document.getElementById('bytes').textContent")
        drawn = self.browser.value_of("document.getElementById('noise').width * document.getElementById('noise').height")
        self.browser.value_of("fetch('sent?target=1').then(it => it.arrayBuffer()).then(it => { window.sent = it.byteLength }); 0")
        self.browser.wait_for("window.sent")
        sent = self.browser.value_of("window.sent")
        self.assertGreaterEqual(drawn, sent)
        self.assertGreater(sent, 10_000)
        self.assertEqual(self.count("#know p"), 3)
        # A match is enlarged, by mouse and keyboard, without a call.
        self.browser.click("#grid li:nth-child(2) button")
        self.browser.wait_for("document.getElementById('detail').open")
        self.browser.press("ArrowRight", 39)
        self.assertEqual(self.text("#detail-title"), "Match 3 of 8")
        third = self.text("#large figcaption .small")
        self.browser.press("Escape", 27)
        self.browser.wait_for("!document.getElementById('detail').open")
        self.browser.wait_for("document.activeElement === document.querySelector('#grid li:nth-child(3) button')")
        self.assertEqual(self.calls(), SEARCH)
        # The next search starts from it, with the picture of this computer.
        self.browser.press("Enter", 13, "\r")
        self.browser.wait_for("document.getElementById('detail').open")
        self.browser.click("#from")
        self.browser.wait_for("document.getElementById('summary').innerText.includes('Two related searches were made')")
        self.assertEqual(self.calls(), 2 * SEARCH)
        self.assertEqual(self.count(f"#grid img[src='picture?id={third.replace('/', '%2F')}']"), 0)  # not itself
        found = self.text("#grid")
        self.check_quiet()
        self.browser.open(self.browser.value_of("location.href"))
        self.wait_for_state("results")
        self.assertEqual((self.count("#history img"), self.text("#grid")), (2, found))
        self.browser.click("#history li:nth-child(2) button")
        self.assertNotIn("related", self.text("#summary"))
        self.browser.click("[data-do=forget]")
        self.wait_for_state("empty")
        self.assertFalse(self.browser.value_of("document.querySelector('#history img')?.checkVisibility() ?? false"))
        self.assertEqual(self.calls().count("SearchEncrypted"), 2)
        self.assertEqual(self.service.charges("colours"), [])
        self.check_quiet()

    def test_dropped_picture(self):
        self.open_page("colours")
        self.browser.drop("#drop", self.folder / "red.png")
        self.wait_for_choice()
        self.search()
        self.assertEqual(self.count("#grid img[src^='picture?id=red%2F']"), 8)
        # A link out of the folder is no picture of it.
        status = "fetch('picture?id=' + encodeURIComponent({})).then(answer => {{ window.status_ = answer.status }})"
        for name, wanted in (("red/02.png", 200), ("red/99.png", 404), ("../anchors/red/01.png", 404)):
            self.browser.value_of("window.status_ = null; " + status.format(json.dumps(name)) + "; 0")
            self.browser.wait_for("window.status_ !== null")
            self.assertEqual(self.browser.value_of("window.status_"), wanted, name)

    def test_encrypted_finds_the_exact_nearest_and_spends_nothing(self):
        self.open_page("plain", pictures=None)
        items, queries = vectors(1200, 1)[0], vectors(5, 3)[0]
        cosines = items @ queries[0] / np.linalg.norm(items, axis=1) / np.linalg.norm(queries[0])
        for _ in range(3):
            self.pick(self.folder / "queries.npy")
            self.assertFalse(self.browser.value_of("document.getElementById('other').checkVisibility()"))  # it has no other way
            self.search()
            found = self.browser.value_of("[...document.querySelectorAll('#grid .name')].map(one => Number(one.innerText.replace('thing ', '')))")
            said = self.browser.value_of("[...document.querySelectorAll('#grid .percent')].map(one => parseFloat(one.innerText))")
            self.assertEqual(len(set(found)), 8)
            # Items nearer to each other than the error of a score may change places.
            np.testing.assert_allclose(cosines[found], np.sort(cosines)[:-9:-1], atol=1e-3)
            np.testing.assert_allclose(said, 100 * cosines[found], atol=.7)
            # Names and pictures are those of the payloads, which came with those of all items.
            self.assertEqual(self.count("#grid img[src^='data:image/png']"), 8)
            self.browser.click("#grid button")
            self.assertIn("no search can start from it", self.text("#from-price"))
            self.browser.press("Escape", 27)
            self.browser.click(".query > [data-do=another]")
        # Rule 7 of PRIVACY.md, section 9: a call that follows by itself could depend on what was decrypted.
        self.assertEqual(self.calls(), 3 * SEARCH)
        self.assertEqual(self.service.charges("plain"), [])
        self.check_quiet()
        self.browser.click("#operators")
        self.browser.wait_for("document.getElementById('budget')?.innerText")
        self.assertIn("need no budget", self.text("#budget"))
        self.assertFalse(self.browser.value_of("document.getElementById('set').checkVisibility()"))
        self.assertIn("plain\t1200\t1200\t\t", self.text("#collections"))

    def test_vectors_by_keyboard_until_the_allowance_is_used_up(self):
        self.open_page("things")
        self.pick(self.folder / "queries.npy")
        at = []
        while "search" not in at:
            self.browser.press("Tab", 9)
            at.append(self.focused())
            self.assertLess(len(at), 20, at)
            if at[-1] == "row":
                self.browser.press("ArrowUp", 38)
                self.browser.press("Enter", 13, "\r")
                self.wait_for_choice()
        self.assertEqual(at, ["row", "search"])
        self.assertIn("Takes 40% of the allowance", self.text("#price"))
        self.browser.press("Tab", 9)
        self.browser.press("Tab", 9)
        self.browser.press("Tab", 9)
        self.browser.press("Enter", 13, "\r")
        self.browser.wait_for("document.getElementById('other').open")
        self.browser.press("Tab", 9)
        self.assertIn("Takes 40% of the allowance · finds about ", self.text("[data-way=cells]"))
        self.browser.press("Enter", 13, "\r")
        self.wait_for_state("results")
        self.assertEqual((self.count("#grid li"), self.service.charges("things")), (8, [2]))
        self.assertIn("60% of your privacy allowance", self.text("#left"))
        self.check_quiet()
        self.service.run("query", "things", "--vectors", self.folder / "queries.npy", "--row", "0", "--scheme", "cells",
                         "--epsilon", "2")
        self.browser.click("[data-way=cells]")
        self.wait_for_state("error")
        self.assertIn("Your privacy allowance is used up", self.text("#problem"))
        self.assertFalse(self.browser.value_of("document.getElementById('retry').checkVisibility()"))
        self.browser.click("#history button")
        self.wait_for_state("results")
        self.assertTrue(self.browser.value_of("document.querySelector('[data-way=cells]').disabled"))
        self.assertIn("Not enough of the allowance is left", self.text("[data-way=cells]"))
        self.assertEqual(self.service.charges("things"), [2, 2])

    def test_server_that_stops_and_one_that_ends(self):
        self.open_page("colours")
        self.pick(self.folder / "red.png")
        self.service.daemon.send_signal(signal.SIGSTOP)
        self.browser.click("#search")
        self.wait_for_state("searching")
        self.assertEqual(self.count("#collection:disabled"), 1)
        self.browser.drop("main", self.folder / "queries.npy")  # is ignored
        self.service.daemon.send_signal(signal.SIGCONT)
        self.wait_for_state("results")
        self.assertEqual(self.count("#grid img[src^='picture?id=red%2F']"), 8)
        self.service.daemon.kill()
        self.browser.click(".query > [data-do=another]")
        self.pick(self.folder / "red.png")
        self.browser.click("#search")
        self.wait_for_state("error")
        self.assertIn("The server did not answer", self.text("#problem"))
        self.browser.click("[data-do=again]")
        self.wait_for_state("searching")
        self.wait_for_state("error")
        url = self.browser.value_of("location.href")
        self.browser.open(url)
        self.wait_for_state("broken")
        self.assertIn("It may be starting", self.text("#problem"))
        self.browser.click("[data-do=again]")
        self.wait_for_state("broken")
        self.assertIn("UNAVAILABLE", self.browser.value_of("document.getElementById('problem').textContent"))

    def test_search_after_a_stopped_wait_is_charged_once(self):
        self.open_page("things")
        self.pick(self.folder / "queries.npy")
        unsent = "!document.getElementById('unsent').hidden"
        self.assertTrue(self.browser.value_of(unsent))
        self.browser.click("#other summary")
        self.service.daemon.send_signal(signal.SIGSTOP)
        self.browser.click("[data-way=cells]")
        self.wait_for_state("searching")
        self.browser.click("[data-do=stop]")
        self.wait_for_state("chosen")
        self.assertFalse(self.browser.value_of(unsent))
        self.service.daemon.send_signal(signal.SIGCONT)
        self.search("[data-way=cells]")
        self.assertEqual((self.count("#grid li"), self.service.charges("things")), (8, [2]))
        self.search("[data-way=cells]")  # a search after an answer is a new one
        self.assertEqual(self.service.charges("things"), [2, 2])

    def test_key_beyond_its_rate_is_no_spent_allowance(self):
        self.service.run("key", "create", "slow", "--scope", "search", "--rate", "5", "--out", self.folder / "slow.key")
        command = self.service.command
        self.service.command = [self.folder / "slow.key" if one == self.folder / "data/admin.key" else one for one in command]
        self.open_page("things")
        self.service.command = command
        self.pick(self.folder / "queries.npy")
        # Each of these queries counts as a call, so the key has to pause for two minutes.
        client = self.connect("slow.key")
        client.collection("plain").search(vectors(600, 3)[0])
        self.browser.click("#search")
        self.wait_for_state("error")
        self.assertIn("The server has too much to do", self.text("#problem"))
        self.assertIn("calls a second", self.text("#problem"))
        self.assertTrue(self.browser.value_of("document.getElementById('retry').checkVisibility()"))
        self.assertEqual(self.service.charges("things"), [])

    def test_forgotten_choice_is_no_bad_file(self):
        self.open_page("colours")
        (self.folder / "bad.png").write_bytes(b"no picture")
        self.browser.choose_file("#file", self.folder / "bad.png")
        self.wait_for_state("error")
        self.assertIn("This file cannot be opened", self.text("#problem"))
        self.browser.click(".query > [data-do=another]")
        self.pick(self.folder / "red.png")
        self.browser.value_of("fetch('api/forget', {method: 'POST', body: ''}).then(() => 0)")  # as another tab
        self.browser.click("#search")
        self.wait_for_state("error")
        self.assertIn("Choose it again", self.text("#problem"))
        self.assertFalse(self.browser.value_of("document.getElementById('retry').checkVisibility()"))

    def test_what_a_page_lacks_is_named(self):
        self.open_page("plain", "--no-browser", pictures=None)
        self.pick(self.folder / "queries.npy")
        self.search()
        self.assertRegex(self.browser.value_of("document.getElementById('once').textContent"),
                         r"never for a single match: the list of all items \([\d.]+\sKB\), the details of all \(\d+\sKB\)\.")
        self.page.stop()
        client = self.connect("data/admin.key")
        client.create_collection("large").ingest(vectors(10)[0], payloads=["x" * 200_000] * 10)
        self.open_page("large", "--no-browser", "--max-memory", "1M", pictures=None)
        self.pick(self.folder / "queries.npy")
        self.browser.click("#search")
        self.wait_for_state("error")
        self.assertIn("too large for this page", self.text("#problem"))
        self.page.stop()

    def test_only_collections_that_can_be_searched_are_offered(self):
        client = self.connect("data/admin.key")
        client.create_collection("a-model", extractor=f"onnx:sha256={'0' * 64};input=4x2;mean=1,2,3;scale=1;channels=rgb;layer=").ingest(
            vectors(10)[0])
        client.create_collection("an-empty")
        client.create_collection("not-built", *vectors(100, 2)).ingest(*vectors(10)[:1], labels=vectors(10)[1])
        self.start_page("", "--no-browser", pictures=None)
        self.open_address(self.page.file.as_uri())
        offered = "[...document.getElementById('collection').options].map(one => one.value)"
        self.assertEqual(self.browser.value_of(offered), ["colours", "plain", "things"])  # that of pictures first
        self.assertEqual(self.browser.value_of("document.getElementById('collection').value"), "colours")
        said = self.text("#cannot")
        for name, why in (("a-model", "described by a model that this page was started without: start it again with --model"),
                          ("an-empty", "Nothing is in it yet"), ("not-built", "Its operator still has to prepare it")):
            self.assertRegex(said, f"“{name}” cannot be searched here. [^.]*{why}")
        for name, promise, stays in (("things", "similar items of its collection and cannot be sure", "partly random form of it"),
                                     ("colours", "closest pictures of its collection without ever", "Your picture never leaves"),
                                     ("plain", "closest items of its collection without ever", "Your file never leaves")):
            self.browser.value_of(f"document.getElementById('collection').value = '{name}';"
                                  "document.getElementById('collection').dispatchEvent(new Event('change')); 0")
            self.browser.wait_for(f"document.getElementById('operators').href.endsWith('#{name}')"
                                  f" && document.getElementById('promise').innerText.includes({json.dumps(promise)})")
            self.assertIn(stays, self.text("#stays"))
        self.browser.wait_for("document.querySelector('#drop strong').innerText.includes('a file of vectors')")
        self.browser.drop("#drop", self.folder / "red.png")
        self.wait_for_state("error")
        self.assertIn("This collection takes no pictures", self.text("#problem"))
        self.check_quiet()
        np.save(self.folder / "narrow.npy", vectors(5)[0][:, :7])
        self.browser.click(".query > [data-do=another]")
        self.browser.drop("#drop", self.folder / "narrow.npy")
        self.wait_for_state("error")
        self.assertIn("These vectors do not fit this collection", self.text("#problem"))
        self.assertIn("They have 7 numbers each, but its items have 16.", self.text("#problem"))
        self.page.stop()
        self.start_page("a-model", "--no-browser", pictures=None)
        self.open_address(self.page.file.as_uri(), "none")
        self.assertEqual(self.text("#nothing"), "“a-model” cannot be searched here")
        self.assertIn("Its pictures are described by a model", self.text("#why"))
        self.browser.wait_for("document.getElementById('collection').checkVisibility()")

    def check_access(self, view):
        if self.browser.value_of("typeof axe") == "undefined":
            self.browser.value_of(axe() + "; 0")
        for width, scheme in ((390, "light"), (390, "dark"), (820, "light"), (1440, "light"), (1440, "dark")):
            self.browser.look_as(width, scheme)
            found = json.loads(self.browser.value_of("axe.run().then(found => JSON.stringify(found.violations))"))
            bad = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found
                   if one["impact"] in ("serious", "critical")]
            self.assertEqual(bad, [], f"{view}, {width} pixels, {scheme}")

    @unittest.skipIf(shutil.which("npm") is None, "no npm is installed, which fetches axe-core")
    def test_views_are_accessible(self):
        self.open_page("colours")
        self.check_access("main")
        self.pick(self.folder / "red.png")
        self.search()
        for fold in ("#how", "#other"):
            self.browser.click(f"{fold} summary")
        self.check_access("result")
        self.browser.click("#grid li:nth-child(2) button")
        self.check_access("enlarged match")
        self.browser.press("Escape", 27)
        self.browser.click("#operators")
        self.browser.wait_for("document.getElementById('budget')?.innerText")
        self.check_access("operators")
        self.browser.click("#back")
        self.wait_for_state("results")
        self.service.daemon.kill()
        self.browser.click(".query > [data-do=another]")
        self.pick(self.folder / "red.png")
        self.browser.click("#search")
        self.wait_for_state("error")
        self.check_access("error")

    def test_program_that_has_ended(self):
        self.open_page("colours")
        self.page.stop()
        self.browser.choose_file("#file", self.folder / "red.png")
        self.wait_for_state("error")
        self.assertIn("This page has ended", self.text("#problem"))
