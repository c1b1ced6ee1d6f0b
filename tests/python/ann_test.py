import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from service import gallery

RUN = os.path.join(os.path.dirname(__file__), "..", "benchmarks", "ann", "run.py")
K = 4


class Runner(unittest.TestCase):
    def test_recall_grows_with_epsilon_and_bytes_with_items(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, name + ".npy") for name in ("gallery", "queries", "labels")}
            rows, labels = gallery(1000)
            np.save(paths["gallery"], rows)
            np.save(paths["labels"], labels)
            np.save(paths["queries"], gallery(40, seed=3)[0])
            out = os.path.join(folder, "table.json")
            subprocess.run([sys.executable, RUN, paths["gallery"], paths["queries"], "--labels", paths["labels"],
                            "-k", str(K), "--epsilons", ".1", "50", "--private-only", "--out", out],
                           check=True, stdout=subprocess.DEVNULL)
            with open(out, encoding="utf-8") as file:
                table = {(row["algorithm"], row["epsilon"]): row for row in json.load(file)}
        few, many = "PrivateMail cells, 20 items", "PrivateMail cells, 100 items"
        self.assertEqual(len(table), 6)
        self.assertIn(("PrivateMail joint", 50), table)
        self.assertLess(table[many, .1]["recall"], .5)
        self.assertGreater(table[many, 50]["recall"], .7)
        self.assertGreater(table[many, 50]["bytes"], 2 * table[few, 50]["bytes"])
        self.assertTrue(all(row["queries_per_second"] > 0 for row in table.values()))


if __name__ == "__main__":
    unittest.main()
