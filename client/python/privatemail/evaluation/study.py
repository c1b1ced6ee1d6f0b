"""What an evaluation measures: data, splits, settings, and the figures that come of it."""

import dataclasses
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Labelled feature vectors: features n x d, each of length 1; labels n; names of classes by label, or none."""

    features: Floats
    labels: Ints
    class_names: Tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Ints) -> "Rows":
        """These rows, in this order."""
        return dataclasses.replace(self, features=self.features[rows], labels=self.labels[rows])


@dataclasses.dataclass(frozen=True)
class Split:
    """The rows of the three parties; no row is in two of them."""

    anchors: Rows  # public
    gallery: Rows  # the server's
    targets: Rows  # the searchers'


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the embedding, as of `privatemail collection create`. alpha None: the label graph's default."""

    kernel_bandwidth: float = 6  # s
    alpha: Optional[float] = None
    kernel: str = "two_sigma_squared"
    label_graph: str = "balanced"
    embedding_dim: int = 2
    steps: int = 10  # T
    normalise: bool = True
    start_stddev: float = 1e-8
    start: str = "classes"


@dataclasses.dataclass(frozen=True)
class Study:
    """The settings that all experiments of a run share."""

    rows: Rows
    about: str  # the data, for people
    anchors_per_class: int = 10
    targets: int = 100  # of a split, in all
    gallery_per_class: int = 80  # at most
    k: int = 8
    seeds: int = 5  # 1 .. seeds, each with a split and noise of its own
    epsilons: Tuple[float, ...] = (.01, .03, .1, .3, 1, 3, 10)  # ascending
    epsilon: float = 1  # where an experiment has one only
    delta: float = 1e-5
    settings: Settings = Settings()


@dataclasses.dataclass(frozen=True)
class Band:
    """A mean and an interval around it; all NaN where nothing was measured."""

    mean: float
    low: float
    high: float


NOT_MEASURED = Band(float("nan"), float("nan"), float("nan"))


@dataclasses.dataclass(frozen=True)
class Point:
    """A point of a series. x: a number, or the index of a category. group: the class of a scattered dot."""

    x: float
    y: float
    low: float = float("nan")
    high: float = float("nan")
    group: int = 0


@dataclasses.dataclass(frozen=True)
class Series:
    """mark: "line"; "reference", a dashed line; "bars", one a category; "scatter", coloured by group."""

    name: str
    points: List[Point]
    mark: str = "line"


@dataclasses.dataclass(frozen=True)
class Axis:
    label: str = ""
    logarithmic: bool = False
    low: Optional[float] = None
    high: Optional[float] = None
    categories: Tuple[str, ...] = ()  # not empty: x counts these


@dataclasses.dataclass(frozen=True)
class Panel:
    """One of the plots side by side in a figure. title: empty where there is one."""

    title: str
    series: List[Series]


@dataclasses.dataclass(frozen=True)
class Figure:
    """title: the message, a sentence made of the data. words: sentences; the first stands above the plot."""

    id: str  # letters, digits and '-'
    title: str
    x: Axis
    y: Axis
    panels: List[Panel]
    words: List[str]
    class_names: Dict[int, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The report's first section.

    rows: one per scheme that was measured, best first, as a table with the columns of `columns`.
    commands: `privatemail collection create ...` and `privatemail query ...` lines that give the first row.
    """

    sentence: str
    columns: Tuple[str, ...]
    rows: List[Tuple[str, ...]]
    commands: List[str]


# Lists of finite numbers by name, such as a score of each target.
Result = Dict[str, List[float]]


@dataclasses.dataclass(frozen=True)
class Job:
    """A part of an experiment. Its result depends on the study and on `key` alone."""

    key: str
    run: Callable[[], Result]  # from any thread
    work: float = 1  # relative to other jobs; for the estimate of the time left
    split: int = 0  # jobs of one split run together, since they share what is made of it; 0: of none


@dataclasses.dataclass(frozen=True)
class Experiment:
    """draw: the figures, of one result a job in their order. A result {"refused": why} has no numbers."""

    name: str
    jobs: List[Job]
    draw: Callable[[List[Result]], List[Figure]]
