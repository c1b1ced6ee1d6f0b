"""The stubs of the compiled modules agree with them and with the examples."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from privatemail import _core

PACKAGE = pathlib.Path(_core.__file__).parent

class Signatures(unittest.TestCase):

    def check(self, *command):
        done = subprocess.run([sys.executable, "-m", *command], cwd=tempfile.gettempdir(), capture_output=True,
                              text=True, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_stubs_and_modules_have_the_same_names(self):
        with tempfile.NamedTemporaryFile("w") as allowed:
            # pybind11 adds these names.
            allowed.write("privatemail.(_core|evaluation._seeded).[A-Z][a-z]*(.__pybind11_module_local_.*)?\n"
                          "privatemail.evaluation._seeded.Scene.__init__\n")
            allowed.flush()
            for module in ("privatemail._core", "privatemail.evaluation._seeded"):
                self.check("mypy.stubtest", "--concise", "--allowlist", allowed.name, "--ignore-unused-allowlist", module)

    def test_help_is_short(self):
        done = subprocess.run([sys.executable, "-c", "import privatemail; help(privatemail)"], capture_output=True,
                              text=True, check=True)
        self.assertLess(done.stdout.count("\n"), 400)
        self.assertIn("encrypted, joint and cells that the collection offers", done.stdout)

    def test_answers_have_the_type_of_their_scheme(self):
        calls = {"q": "EncryptedHits", "q, scheme='encrypted', label=3": "EncryptedHits", "q, epsilon=1.0": "Hits",
                 "q, epsilon=.1, delta=1e-5, label=3": "Hits", "q, scheme='cells', epsilon=1, items=20": "Hits",
                 "q, plan=plan": "Hits"}
        lines = ["import privatemail as pm", "def f(fruit: pm.Collection, q: list[float], plan: pm.Plan) -> None:"]
        lines += [f"    found{i}: pm.{kind} = fruit.search({given})\n    print(found{i}.ids)"
                  for i, (given, kind) in enumerate(calls.items())]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "typed.py")
            path.write_text("\n".join(lines))
            options = ("--strict", "--ignore-missing-imports", f"--cache-dir={folder}/cache")
            self.check("mypy", *options, str(path))
            path.write_text("\n".join(lines).replace(".ids", ".idz"))
            with self.assertRaisesRegex(AssertionError, "has no attribute .idz"):
                self.check("mypy", *options, str(path))

    def test_examples_have_the_types_of_the_stubs(self):
        documents = pathlib.Path(__file__).parents[2] / "docs"
        with tempfile.TemporaryDirectory() as folder:
            def write(name, parts):
                path = pathlib.Path(folder, name + ".py")
                path.write_text("\n".join(parts))
                return str(path)

            notebooks = [write(one.stem, ("".join(cell["source"]) for cell in json.loads(one.read_text())["cells"]
                                          if cell["cell_type"] == "code")) for one in documents.glob("notebooks/*")]
            self.assertGreaterEqual(len(notebooks), 4)
            page = write("page", re.findall("```python\n(.*?)```", (documents / "python.md").read_text(), re.S))
            options = ("--ignore-missing-imports", f"--cache-dir={folder}/cache")
            self.check("mypy", *options, *notebooks, page)

    def test_stub_and_module_have_the_same_arguments(self):
        """pybind11 tells a function's only in its docstring: "name(arg0: int, ...) -> str"."""
        stub = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="ascii"))
        checked = 0
        for where, body in [(_core, stub.body)] + [(getattr(_core, one.name), one.body) for one in stub.body
                                                   if isinstance(one, ast.ClassDef)]:
            for one in body:
                if not isinstance(one, ast.FunctionDef) or one.decorator_list:
                    continue
                lines = getattr(where, one.name).__doc__.splitlines()
                given = len(one.args.args) + len(one.args.kwonlyargs)
                self.assertEqual(lines[0].split(") ->")[0].count(": "), given, lines[0])
                checked += 1
        self.assertGreater(checked, 25)
