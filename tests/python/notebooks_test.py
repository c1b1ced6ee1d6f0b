"""The notebooks of docs/notebooks run from the installed package; a cell that raises fails."""

import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import nbclient
import nbformat

NOTEBOOKS = pathlib.Path(__file__).parents[2] / "docs" / "notebooks"


class Notebooks(unittest.TestCase):

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
