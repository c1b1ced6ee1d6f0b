"""The notebooks and the Python page of docs/ run from the installed package; a cell or block that raises fails."""

import hashlib
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import nbclient
import nbformat
import numpy as np

import privatemail as pm

SOURCE = pathlib.Path(__file__).parents[2]
NOTEBOOKS = SOURCE / "docs" / "notebooks"


class Documentation(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run(["cmake", "--install", os.environ["BUILD"], "--prefix", folder], check=True,
                       stdout=subprocess.DEVNULL)
        cls.enterClassContext(mock.patch.dict(os.environ, {
            "PYTHONPATH": f"{folder}/lib/python3/dist-packages", "PATH": f"{folder}/bin:/usr/bin:/bin",
            "PRIVATEMAILD": "", "MPLBACKEND": "agg"}))

    def test_run_and_store_little(self):
        paths = sorted(NOTEBOOKS.glob("*.ipynb"))
        self.assertEqual([path.stem for path in paths], ["ask", "audit", "evaluate", "plan"])
        for path in paths:
            with self.subTest(path.stem), tempfile.TemporaryDirectory() as folder:
                self.assertLess(path.stat().st_size, 20_000)
                notebook = nbformat.read(path, as_version=4)
                nbformat.validate(notebook)
                nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                                        resources={"metadata": {"path": folder}}).execute()

    def test_blocks_of_the_page_run_in_order(self):
        blocks = re.findall("```python\n(.*?)```", (SOURCE / "docs" / "python.md").read_text(encoding="utf-8"), re.S)
        self.assertEqual(len(blocks), 4)
        rng = np.random.default_rng(2)
        with pm.Server.local() as server:  # somebody else's
            fruit = server.create_collection("fruit", rng.normal(size=(100, 64)), cells=[4], publish_quality=True)
            fruit.ingest(rng.normal(size=(1000, 64)))
            fruit.build(wait=True)
            with open(os.path.join(server.data, "tls", "server.crt"), encoding="ascii") as file:
                certificate = ssl.PEM_cert_to_DER_cert(file.read())
            environment = {"PRIVATEMAIL_SERVER": server.address, "PRIVATEMAIL_KEY_FILE": server.key_file,
                           "PRIVATEMAIL_TRUST": hashlib.sha256(certificate).hexdigest(),
                           "PRIVATEMAIL_STATE": server.client.state}
            done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(blocks)], cwd=SOURCE, text=True,
                                  env={**os.environ, **environment}, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
