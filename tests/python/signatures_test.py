"""The stub of the compiled module agrees with it, and help() shows every name."""

import ast
import os
import pydoc
import subprocess
import sys
import tempfile
import unittest

import privatemail as pm
from privatemail import _core


class Signatures(unittest.TestCase):

    def test_stub_and_module_have_the_same_names(self):
        with tempfile.NamedTemporaryFile("w") as allowed:
            allowed.write("privatemail._core.(Session|Extractor)(.__pybind11_module_local_.*)?\n")  # pybind11's own
            allowed.flush()
            done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--concise", "--allowlist", allowed.name,
                                   "privatemail._core"], cwd=tempfile.gettempdir(), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_stub_and_module_have_the_same_arguments(self):
        """pybind11 tells a function's only in its docstring: "name(arg0: int, ...) -> str"."""
        with open(os.path.join(os.path.dirname(_core.__file__), "_core.pyi"), encoding="ascii") as file:
            stub = ast.parse(file.read())
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

    def test_help_describes_every_name(self):
        self.assertEqual(dir(pm), sorted(pm.__all__))
        for name in pm.__all__:
            one = getattr(pm, name)
            self.assertTrue(isinstance(one, str) or one.__doc__, name)
            if isinstance(one, type):
                for call in (call for call in vars(one).values() if callable(call) and call.__name__[0] != "_"):
                    if call.__name__ not in ("collection", "collections"):
                        self.assertTrue(call.__doc__, call.__qualname__)
        text = pydoc.plain(pydoc.render_doc(pm))
        for name in ("connect", "calibrate", "Collection", "Server", "BudgetExhausted"):
            self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
