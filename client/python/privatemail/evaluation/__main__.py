"""`privatemail evaluate` and `privatemail tune`: python3 -m privatemail.evaluation [evaluate|tune] --out FOLDER ..."""

import argparse
import dataclasses
import itertools
import re
import shutil
import signal
import sys
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

import numpy as np

from privatemail._progress import progress_bar
from privatemail.errors import Internal, InvalidArgument, NotFound, PrivateMailError
from privatemail.evaluation import _seeded, data, report, runner
from privatemail.evaluation.baselines import baselines
from privatemail.evaluation.experiments import NAMES, select
from privatemail.evaluation.experiments.settings import tune, tuning_study
from privatemail.evaluation.study import Figure, Rows, Settings, Study, Verdict
from privatemail.evaluation.sweep import Stage, exact
from privatemail.evaluation.verdict import comparison, verdict

_Given = Dict[str, Any]  # options of the command line, by name; without those that were left out


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'must be a whole number, but is "{text}"') from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'must be a number, but is "{text}"') from None


def _numbers(text: str) -> List[float]:
    return [_number(part) for part in text.split(",")]


class _Value(NamedTuple):
    """An option for a field of Study or Settings."""

    flag: str
    field: str
    type: Any
    help: str


_STUDY = (
    _Value("--seeds", "seeds", _whole, "splits of the data, each with noise of its own"),
    _Value("--targets", "targets", _whole, "of each split"),
    _Value("--anchors-per-class", "anchors_per_class", _whole, "public vectors"),
    _Value("--gallery-per-class", "gallery_per_class", _whole, "at most"),
    _Value("-k", "k", _whole, "items that come back"),
    _Value("--epsilons", "epsilons", _numbers, "ascending, from 1e-6 to 1e6, separated by commas or spaces: of all "
           "that is drawn against epsilon, but for cells"),
    _Value("--epsilon", "epsilon", _number, "where there is one only"),
    _Value("--delta", "delta", _number, "of mechanisms that take one"),
)
_SETTINGS = (
    _Value("--bandwidth", "kernel_bandwidth", _number, "kernel bandwidth over unit vectors"),
    _Value("--dim", "embedding_dim", _whole, "dimensions of the embedding"),
    _Value("--label-graph", "label_graph", str, "balanced, distance, kernel or one_hot_kernel"),
    _Value("--kernel", "kernel", str, "denominator of the feature kernel: sigma, sigma_squared or two_sigma_squared"),
    _Value("--start", "start", str, "random, normal draws, or classes, a public point for each class"),
    _Value("--start-stddev", "start_stddev", _number, "standard deviation of the start"),
    _Value("--alpha", "alpha", _number, "weight of labels; by label graph and labels if absent, as for `privatemail "
           "collection create`"),
    _Value("--steps", "steps", _whole, "iterations T, on either side"),
)
# Names in messages of the library, and the flags that users typed.
_FLAGS = {**{one.field: one.flag for one in (*_STUDY, *_SETTINGS)}, "directory": "--out", "cache": "--out",
          **{name: f"--{name}" for name in ("vectors", "labels", "images", "preset", "data", "classes")}}


def _default(owner: type, one: _Value) -> str:
    value = getattr(owner, one.field)
    if value is None:
        return ""
    return f" (default {','.join(map(exact, value)) if isinstance(value, tuple) else value})"


class _Parser(argparse.ArgumentParser):
    """Its errors have the form of those of `privatemail`."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {_printable(message.removeprefix('argument '))} (INVALID_ARGUMENT)\n"
                     f"`{self.prog} --help` says more.\n")


_USUAL = ("vectors", "labels", "images", "out")  # what --help shows without -v


def _parser(command: str, verbose: bool) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"privatemail {command}", argument_default=argparse.SUPPRESS, allow_abbrev=False,
        usage=None if verbose else "%(prog)s --vectors FILE --labels FILE --out FOLDER [OPTIONS]",
        description="What PrivateMail finds on your data, what that costs, and what it leaks." + verbose *
        " tune: searches for settings on these data alone; if they are a collection's public anchors, that spends no "
        "budget. It tries values of --dim, --bandwidth and --steps, and of --alpha around what is given.",
        epilog="Exit codes: 0 done, 1 failed, 2 the command line was not understood, or a value or file that it gives "
        "is not valid." if verbose else "All options and details: %(prog)s --help -v")
    parser.add_argument("--version", action="version", version=f"privatemail evaluate {_seeded.__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="with --help: all options")
    parser.add_argument("--vectors", help="feature vectors: .npy, .npz, .fvecs or .csv")
    parser.add_argument("--labels", help="a label for each, number or name: .npy, .npz, .ivecs, .csv, .txt")
    parser.add_argument("--images", help="instead of vectors: images in a folder by class")
    parser.add_argument("--preset", help="cars196, cub200 or cifar100: the second paper's parameters (table 2)")
    parser.add_argument("--data", help="folder of the preset's image set as it is distributed, of cars196 sorted into "
                        "one folder a class; cifar100: also test.bin")
    parser.add_argument("--onnx", help="model for images; the built-in descriptor if absent")
    parser.add_argument("--input-size", metavar="WIDTHxHEIGHT", help="the input of --onnx (default 224x224)")
    parser.add_argument("--classes", help="all, first or second half of the classes by number; the preset's (second, "
                        "cifar100: all) if absent")
    parser.add_argument("--out", required=True, help="folder to make: the report, and features of images and results "
                        "of parts, with which a run goes on that was interrupted")
    parser.add_argument("--experiments", help=f"some of {NAMES}, with commas between; all but the attacks if absent")
    parser.add_argument("--attacks", action="store_true", help="the leakage report, too")
    parser.add_argument("--tune", action="store_true", help="as `privatemail tune`")
    for owner, values in ((Study, _STUDY), (Settings, _SETTINGS)):
        for one in values:
            several: Dict[str, Any] = {"nargs": "+"} if one.type is _numbers else {}
            parser.add_argument(one.flag, dest=one.field, type=one.type, help=one.help + _default(owner, one),
                                metavar="TEXT" if one.type is str else "NUMBER", **several)
    for option in parser._actions:  # pylint: disable=protected-access
        if option.dest not in _USUAL and not verbose:
            option.help = argparse.SUPPRESS
    return parser


def _check_all_is_used(given: _Given) -> None:
    if "vectors" in given and "onnx" in given:
        raise InvalidArgument("--onnx is for images and not accepted with --vectors")
    if "input_size" in given and "onnx" not in given:
        raise InvalidArgument("--input-size is that of --onnx, which is not given")
    names = given.get("experiments", "")
    if "epsilons" in given and "attacks" not in given and set(names.split(",")) == {"cells"}:
        raise InvalidArgument(f"--epsilons is not accepted with --experiments {names}: cells are drawn against epsilons of "
                              "their own")
    if "tune" in given:
        for name in ("experiments", "attacks", "epsilons"):
            if name in given:
                raise InvalidArgument(f"--{name} is not accepted by tune")
        for field in ("anchors_per_class", "embedding_dim", "kernel_bandwidth", "steps"):
            if field in given:
                raise InvalidArgument(f"{_FLAGS[field]} is what tune chooses by itself")


def _input_size(given: _Given) -> Tuple[int, int]:
    text = given.get("input_size", "224x224")
    size = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    if not size:
        raise InvalidArgument(f'--input-size must be WIDTHxHEIGHT, but is "{text}"')
    return int(size[1]), int(size[2])


def _described(images: data.ImageList, given: _Given) -> Rows:
    if images.skipped:
        print(f"left out {len(images.skipped)} files or folders:", file=sys.stderr)
        for name, why in images.skipped[:5]:
            print(f"  {_printable(name)}: {_printable(why)}", file=sys.stderr)
    with progress_bar("images", len(images.paths)) as progress:
        return data.describe(images, f"{given['out']}/features", given.get("onnx"), _input_size(given), progress)


def _read(given: _Given) -> Tuple[Rows, int]:
    """The rows, and the number of files that were left out."""
    sources = [name for name in ("vectors", "images", "data") if name in given]
    if len(sources) != 1 or ("vectors" in given) != ("labels" in given) or ("data" in given and "preset" not in given):
        raise InvalidArgument("expected one source of data: --vectors with --labels, --images, or --data with --preset")
    if "vectors" in given:
        return data.read_vectors(given["vectors"], given["labels"]), 0
    if "images" in given:
        images = data.image_folder(given["images"])
    elif given["preset"] != "cifar100":
        images = {"cub200": data.cub200, "cars196": data.cars196}[given["preset"]](given["data"])
    else:
        scratch = f"{given['out']}/unpacked"
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was interrupted
        try:
            return _described(data.cifar100(given["data"], scratch), given), 0
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return _described(images, given), len(images.skipped)


def _study(given: _Given) -> Study:
    _check_all_is_used(given)
    preset = data.preset(given["preset"]) if "preset" in given else None
    all_rows, skipped = _read(given)
    rows = data.half_of_classes(all_rows, given.get("classes", preset.classes if preset else "all"))
    classes = len(np.unique(rows.labels))
    # As `privatemail collection create`: two classes lie on a line.
    settings = preset.settings if preset else Settings(embedding_dim=1 if classes == 2 else Settings.embedding_dim)
    about = f"{len(rows)} rows of {rows.features.shape[1]} values, {classes} classes"
    if skipped:
        about += f"; {skipped} files or folders left out"
    of_study: Dict[str, Any] = {"epsilon": preset.epsilon, "delta": preset.delta} if preset else {}
    of_study.update((one.field, given[one.field]) for one in _STUDY if one.field in given)
    of_settings = {one.field: given[one.field] for one in _SETTINGS if one.field in given}
    study = Study(rows, about, settings=dataclasses.replace(settings, **of_settings), **of_study)
    return tuning_study(study) if "tune" in given else study


def _range(sizes: Sequence[int]) -> str:
    return f"{max(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _about(stage: Stage) -> List[Tuple[str, str]]:
    study = stage.study
    sizes = []
    for seed in range(1, study.seeds + 1):
        split = stage.split(seed)
        sizes.append((len(split.anchors), len(split.gallery), len(split.targets)))
    return [("Data", study.about), ("Anchors, gallery, targets of a split", "; ".join(map(_range, zip(*sizes)))),
            ("Retrieved", f"k = {study.k}"),
            ("Splits", f"{study.seeds} of this data set, by seeds from 1, each with noise of its own"),
            ("Bands", "each figure says of what kind"),
            ("Noise", "seeded: it can be drawn again, and was never released")]


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(exact, value))
    return exact(value) if isinstance(value, float) else str(value)


def _all_settings(study: Study) -> List[Tuple[str, str]]:
    """With every digit."""
    values = [(one.flag, _text(getattr(owner, one.field)))
              for owner, options in ((study.settings, _SETTINGS), (study, _STUDY)) for one in options]
    return [*values, ("Scaled in every step", "yes" if study.settings.normalise else "no"),
            ("Program", f"privatemail evaluate {_seeded.__version__}"),
            ("SHA-256 of the data", data.digest(study.rows))]


def _printable(text: str) -> str:
    """Without characters that steer a terminal."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _print(found: Optional[Verdict], figures: List[Figure]) -> None:
    if found:
        print("\n".join([found.sentence, *(f"  {command}" for command in found.commands), ""]))
    for figure in figures:
        print("\n".join([figure.title, *(f"- {sentence}" for sentence in figure.words), ""]))


def _evaluate(given: _Given) -> None:
    out = given["out"]
    if not out:
        raise InvalidArgument("--out must be a folder, but is empty")
    is_tuning = "tune" in given
    stage = Stage(_study(given))
    print(_printable(stage.study.about), file=sys.stderr)
    if is_tuning:
        experiments = [tune(stage)]
    else:
        others = baselines(stage.split(1), stage.study.settings.embedding_dim)
        experiments = [comparison(stage), *select(stage, given.get("experiments", ""), "attacks" in given, others)]
    results = runner.measure(experiments, out, runner.study_key(stage.study), sys.stderr)
    figures = [figure for one, of_jobs in zip(experiments, results) for figure in one.draw(of_jobs)]
    found = None if is_tuning else verdict(stage, results[0])
    _print(found, figures)
    title = "Settings, tried on the rows given" if is_tuning else "Retrieval quality, privacy and cost on these data"
    try:
        report.write(out, title, _about(stage), _all_settings(stage.study), found, figures)
    except InvalidArgument as error:  # not of the user
        raise Internal(f"the report cannot be drawn: {error}") from error
    print(f"report: {out}/index.html")


def _with_flag(error: PrivateMailError) -> str:
    """The message with the flag in place of the field that it begins with."""
    message = str(error)
    if error.argument is None or error.argument not in _FLAGS:
        return message
    return _FLAGS[error.argument] + message[len(error.argument):]


def main(words: List[str]) -> int:
    """Returns the exit code."""
    command = words[0] if words[:1] in (["evaluate"], ["tune"]) else ""
    verbose = any(word in ("-v", "--verbose") for word in words)
    given = vars(_parser(command or "evaluate", verbose).parse_args(words[1:] if command else words))
    given.pop("verbose", None)
    if command == "tune":
        given["tune"] = True
    if "epsilons" in given:
        given["epsilons"] = tuple(itertools.chain.from_iterable(given["epsilons"]))
    try:
        _evaluate(given)
        return 0
    except PrivateMailError as error:
        message, code = _with_flag(error), error.code
        status = 2 if isinstance(error, (InvalidArgument, NotFound)) else 1
    except MemoryError:
        message, code, status = "not enough memory on this machine", "RESOURCE_EXHAUSTED", 1
    print(f"error: {_printable(message)} ({code})", file=sys.stderr)
    return status


if __name__ == "__main__":
    # Results are written atomically: an interrupt may end the process at once, in the middle of a job.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
