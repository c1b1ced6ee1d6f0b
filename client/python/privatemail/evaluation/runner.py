"""Runs the jobs of experiments on all cores, and caches their results so that an interrupted run can go on."""

import concurrent.futures
import dataclasses
import hashlib
import itertools
import json
import math
import os
import pathlib
from typing import List, NamedTuple, NoReturn, Optional, Sequence, TextIO, cast

import numpy as np
import scipy
import sklearn
import threadpoolctl
from tqdm import tqdm

from privatemail.errors import FailedPrecondition, Internal, PrivateMailError
from privatemail.evaluation import _seeded, data
from privatemail.evaluation.study import Experiment, Figure, Job, Result, Study

# Results do not depend on these: x and seed are in the keys of jobs.
_NO_PART_OF_RESULTS = ("rows", "about", "seeds", "epsilons")


def study_key(study: Study) -> str:
    """All that results of jobs depend on, in addition to their keys: the study, and the program by its files and libraries."""
    program = hashlib.sha256()
    folder = pathlib.Path(__file__).parent
    for file in sorted([*folder.rglob("*.py"), *folder.glob("*.so")]):
        program.update(file.read_bytes())
    lines = [f"program {program.hexdigest()}",
             f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}",
             f"data {data.digest(study.rows)}"]
    fields = [field.name for field in dataclasses.fields(study) if field.name not in _NO_PART_OF_RESULTS]
    return "\n".join(lines + [f"{field} {getattr(study, field)!r}" for field in fields])


class _Place(NamedTuple):
    """A job, and the file of its result."""

    experiment: str
    job: Job
    settings: str
    path: pathlib.Path


def _place(experiment: str, job: Job, folder: pathlib.Path, key: str) -> _Place:
    settings = f"{key}\n{experiment}: {job.key}"
    digest = hashlib.sha256(settings.encode()).hexdigest()[:32]
    return _Place(experiment, job, settings, folder / f"{experiment}-{digest}.json")


def _floats(result: Result) -> Result:
    return {name: [float(value) for value in values] for name, values in result.items()}


def _cached(place: _Place) -> Optional[Result]:
    """None where there is no file, or a damaged one."""
    try:
        stored = json.loads(place.path.read_text("utf-8"))
        return _floats(stored["result"]) if stored["settings"] == place.settings else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _refused(why: str) -> Result:
    return cast(Result, {"refused": why})


def _run(place: _Place) -> Result:
    try:
        result = _floats(place.job.run())
    except FailedPrecondition as error:
        return _refused(str(error))
    for name, values in result.items():
        for value in values:
            if not math.isfinite(value):
                return _refused(f"its {name} would be {value}")
    temporary = place.path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"settings": place.settings, "result": result}), "utf-8")
    os.replace(temporary, place.path)
    return result


def _result(future: "concurrent.futures.Future[Result]", place: _Place) -> Result:
    where = f"{place.experiment}, {place.job.key}"
    try:
        return future.result()
    except PrivateMailError as error:
        raise type(error)(f"{where}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:
        raise Internal(f"{where}: {type(error).__name__}: {error}") from error


def _progress_bar(work: float, stream: Optional[TextIO]) -> "tqdm[NoReturn]":
    seconds = .5 if stream and stream.isatty() else 30
    return tqdm(total=work, disable=not (stream and work), file=stream, mininterval=seconds, delay=seconds,
                leave=False, bar_format="{percentage:3.0f} % {bar} {elapsed}, about {remaining} left")


def measure(experiments: Sequence[Experiment], folder: str, key: str, progress: Optional[TextIO]) -> List[List[Result]]:
    """The results of the jobs of each experiment, equal on any number of cores.

    folder: created; results are cached in its folder `jobs` by key, experiment and job. key: study_key. progress: the
    stream for a progress bar. A job that raises FailedPrecondition or gives a number that is not finite has the result
    {"refused": why}, which is not cached; any other error ends the run and names the experiment.
    """
    jobs = pathlib.Path(folder, "jobs")
    try:
        jobs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FailedPrecondition(f"--out must be a folder, but {jobs} cannot be made: {error.strerror}") from error
    places = [_place(one.name, job, jobs, key) for one in experiments for job in one.jobs]
    found = {number: _cached(place) for number, place in enumerate(places)}
    results = {number: result for number, result in found.items() if result is not None}
    # Jobs on one split run one after the other, since they share what is computed of it.
    to_run = sorted(found.keys() - results.keys(), key=lambda number: (places[number].job.split, number))
    if progress and results:
        print(f"{len(results)} of {len(places)} parts are of an earlier run", file=progress)
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    # Rounding of linear algebra would depend on the number of cores.
    with threadpoolctl.threadpool_limits(1), _progress_bar(sum(places[number].job.work for number in to_run),
                                                           progress) as bar:
        try:
            numbers = {pool.submit(_run, places[number]): number for number in to_run}
            for future in concurrent.futures.as_completed(numbers):
                number = numbers[future]
                results[number] = _result(future, places[number])
                bar.update(places[number].job.work)
        finally:
            pool.shutdown(cancel_futures=True)
    in_order = iter([results[number] for number in range(len(places))])
    return [list(itertools.islice(in_order, len(one.jobs))) for one in experiments]


def run(experiments: Sequence[Experiment], folder: str, key: str, progress: Optional[TextIO]) -> List[Figure]:
    """The figures of all experiments, in order. Arguments as of measure."""
    results = measure(experiments, folder, key, progress)
    return [figure for one, of_jobs in zip(experiments, results) for figure in one.draw(of_jobs)]
