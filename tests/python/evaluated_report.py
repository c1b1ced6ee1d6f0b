"""An evaluation that is killed and resumed writes the same report as one that was not."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

CLASSES, EACH, DIM = 6, 20, 6
# Command-line values, and the settings that the report must show.
SETTINGS = {"--seeds": ("2", "2"), "--targets": ("12", "12"), "--anchors-per-class": ("7", "7"),
            "--gallery-per-class": ("8", "8"), "-k": ("3", "3"), "--epsilons": (".1,1,10", "0.1, 1, 10"),
            "--epsilon": ("1", "1"), "--delta": (".001", "0.001"), "--bandwidth": ("2.5", "2.5"),
            "--alpha": ("7.5", "7.5"), "--dim": ("3", "3"), "--steps": ("4", "4"),
            "--kernel": ("two_sigma_squared", "two_sigma_squared"), "--label-graph": ("distance", "distance")}


def write_data(folder):
    generator = random.Random(7)
    centres = [[generator.gauss(0, 1) for _ in range(DIM)] for _ in range(CLASSES)]
    rows = [[value + generator.gauss(0, .4) for value in centres[i % CLASSES]] for i in range(CLASSES * EACH)]
    (folder / "vectors.csv").write_text("".join(",".join(map(repr, row)) + "\n" for row in rows), encoding="ascii")
    (folder / "labels.csv").write_text("".join(f"{i % CLASSES}\n" for i in range(len(rows))), encoding="ascii")


def command(folder, out):
    options = [text for name, (given, _) in SETTINGS.items() for text in (name, given)]
    return [sys.executable, "-m", "privatemail.evaluation", "evaluate", "--vectors", str(folder / "vectors.csv"),
            "--labels", str(folder / "labels.csv"), "--attacks", *options, "--out", str(out)]


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def parts(out):
    jobs = out / "jobs"
    return len(list(jobs.glob("*.json"))) if jobs.exists() else 0


def kill_after(arguments, out, wanted):
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and parts(out) < wanted:
        time.sleep(.002)  # between two looks at the condition
    process.kill()
    assert process.wait() != 0 and not (out / "results.json").exists(), "the evaluation ended before it was killed"


def files_of(out):
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def check_settings(results):
    said = {name.split(" (")[0]: value for name, value in results["settings"]}
    for name, (_, expected) in SETTINGS.items():
        assert said.get(name) == expected, f"{name} is said to be {said.get(name)}, not {expected}"


def main():
    with tempfile.TemporaryDirectory(prefix="privatemail_evaluated_") as name:
        folder = pathlib.Path(name)
        write_data(folder)
        whole, broken = folder / "whole", folder / "broken"
        run(command(folder, whole))
        count = parts(whole)
        kill_after(command(folder, broken), broken, count // 3)
        kept = parts(broken)
        assert 0 < kept < count, f"{kept} of {count} parts were done"
        said = run(command(folder, broken))
        assert "of an earlier run" in said, said
        expected, actual = files_of(whole), files_of(broken)
        assert expected.keys() == actual.keys(), expected.keys() ^ actual.keys()
        for file, content in expected.items():
            assert actual[file] == content, f"{file} differs after the interruption"
        check_settings(json.loads(expected["results.json"]))
    print(f"{count} parts, {kept} before the kill, {len(expected)} files alike")
    return 0


if __name__ == "__main__":
    sys.exit(main())
