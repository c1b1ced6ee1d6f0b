"""A search at two operators on `privatemail page`, in a browser."""

import os
import unittest

import numpy as np

import privatemail as pm
from page_browser_test import BrowserTest
from service import TwoOperators


class TwoOperatorsPageTest(BrowserTest):
    def test_vectors_are_found_at_no_cost(self):
        service = TwoOperators()
        self.addCleanup(service.close)
        path = os.path.join(service.folder.name, "queries.npy")
        np.save(path, service.rows[:5])
        page = pm.page(service.things)
        self.addCleanup(page.close)
        self.address = "/".join(page.address.split("/")[:3])
        self.open_address(page.address)
        self.browser.click("input[value=two-server]")
        self.assertTrue(self.browser.value_of("document.getElementById('epsilon').disabled"))
        self.assertIn("nothing is spent", self.text("#expect"))
        self.assertTrue(self.browser.value_of("document.getElementById('compare-with').checkVisibility()"))
        self.pick(path)
        self.browser.click("#ask")
        self.browser.wait_for("!document.getElementById('answer').hidden")
        self.assertTrue(self.text("#matches li").startswith("0, class 0"), self.text("#matches li"))
        self.assertEqual(self.count("#matches li"), 8)
        self.assertIn("North alone learns nothing of your target", self.text("#sentence"))
        self.assertRegex(self.text("#facts"), "^The nearest of 2000 items, by scores. Nothing was spent.")
        self.assertRegex(self.text("#releases"), "(?s)North, 127.*a seed of 16 uniform bytes.*South, 127.*16 words of 32")
        self.assertFalse(self.browser.value_of("document.getElementById('bytes').checkVisibility()"))
        self.browser.value_of("document.getElementById('mode').value = 'lists'")
        self.browser.value_of("document.getElementById('lists').value = 3")
        self.browser.wait_for("!document.getElementById('ask').disabled")  # it reads the budget
        self.browser.click("#ask")
        self.browser.wait_for("/by lists/.test(document.getElementById('facts').textContent)")
        self.assertRegex(self.text("#releases"), "(?s)North, 127.*3 selections of 8.*South, 127.*3 selections of 8")
        self.check_quiet()


if __name__ == "__main__":
    unittest.main()
