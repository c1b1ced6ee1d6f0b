"""Noise, its sensitivity and attacks on it. No server, no target, no budget."""

import dataclasses
import math
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
from numpy.typing import ArrayLike

from privatemail import _arrays, _core
from privatemail._calls import checked_call
from privatemail._progress import progress_bar
from privatemail._results import Guarantee
from privatemail.errors import wrong


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The noise that a guarantee needs, of each released value. stddev: of the untruncated law if there is a box."""

    stddev: float
    variance: float
    guarantee: Guarantee


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """A bound on the change of a release of `rows` rows when its target is replaced; None: of another kind.

    l2, l1: in these norms. lipschitz_to_l2, lipschitz_to_l1: per unit of the target's features. proven: False if it
    follows a printed formula without a proof.
    """

    bound: str
    rows: int
    proven: bool
    source: str
    l2: Optional[float] = None
    l1: Optional[float] = None
    lipschitz_to_l2: Optional[float] = None
    lipschitz_to_l1: Optional[float] = None


@dataclasses.dataclass(frozen=True, repr=False)
class Audit:
    """A lower bound on the epsilon of releases, found by attacks, beside their claim.

    epsilon_lower: of the best attack, with `confidence`. exceeded: it is above the claim, which is then false.
    releases: of each of two neighbours. An audit can refute a claim, not prove one.
    """

    mechanism: str
    claim: Guarantee
    epsilon_lower: float
    exceeded: bool
    confidence: float
    attack: str
    releases: int

    def __repr__(self) -> str:
        verdict = "EXCEEDED" if self.exceeded else "proven" if self.claim.proven else "published"
        return (f"Audit({self.mechanism}: claims epsilon {self.claim.epsilon:.4g}, delta {self.claim.delta:.4g}; "
                f"at least {self.epsilon_lower:.4f}; {verdict}; {self.releases} releases)")


def _optional(field: str, given: Optional[float]) -> Optional[float]:
    return None if given is None else _arrays.number(field, given)


@checked_call
def calibrate(mechanism: str, *, epsilon: float, delta: Optional[float] = None, sensitivity: Optional[float] = None,
              lower: Sequence[float] = (), upper: Sequence[float] = (), radius: Optional[float] = None,
              norm: float = 2.0, lipschitz: Optional[float] = None, dimension: Optional[int] = None) -> Calibration:
    """The noise that a guarantee needs; arguments that the mechanism does not use are refused.

    mechanism: such as "gaussian", "laplace", "lap-output" (docs/schemes.md). sensitivity: of the value, L1 for laplace,
    else L2. lower, upper: box of a bounded mechanism, a number a value. Inference Privacy: radius, within which inputs
    are indistinguishable, in the l_p metric of p = norm; lipschitz: of the output, from it to L1 for lap-output, else
    L2. dimension: of the input for gauss-input, or of a box of equal sides.
    """
    stddev, variance, guarantee = _core.calibrate(
        _arrays.text("mechanism", mechanism), _arrays.number("epsilon", epsilon), _optional("delta", delta),
        _optional("sensitivity", sensitivity), _arrays.numbers("lower", lower), _arrays.numbers("upper", upper),
        _optional("radius", radius), _arrays.number("norm", norm), _optional("lipschitz", lipschitz),
        None if dimension is None else _arrays.integer("dimension", dimension))
    return Calibration(stddev, variance, Guarantee(**guarantee))


@checked_call
def sensitivity(bound: str, *, anchor_labels: ArrayLike, anchors: Optional[ArrayLike] = None,
                changed: Optional[int] = None, seed: Optional[int] = None, **settings: Any) -> Sensitivity:
    """Bounds the change of a release when its target is replaced.

    bound: "known-anchors" (of releases, by default), "replace-target", "lipschitz", "published-gaussian" or
    "published-laplace". anchor_labels: n integers. anchors: n x d, for known-anchors only. changed: rows that differ:
    2, or 1 when the class is public. seed: of a repeatable random start. settings: as of `create_collection`.
    """
    given = _arrays.as_array("anchor_labels", anchor_labels)
    labels = _arrays.labels("anchor_labels", given, given.size).tolist()
    values, rows, proven, source = _core.sensitivity(
        _arrays.text("bound", bound), labels, None if anchors is None else _arrays.rows("anchors", anchors),
        None if changed is None else _arrays.integer("changed", changed),
        None if seed is None else _arrays.integer("seed", seed), _arrays.settings(settings))
    return Sensitivity(bound, rows, proven, source, values.get("sensitivity"), values.get("l1_sensitivity"),
                       values.get("lipschitz_to_l2"), values.get("lipschitz_to_l1"))


@checked_call
def audit(mechanism: Optional[str] = None, *, epsilon: float = 2.0, delta: Optional[float] = None,
          releases: int = 1_000_000, confidence: float = .999999) -> List[Audit]:
    """Attacks releases by the production code; spends no budget. With all mechanisms it takes minutes; Ctrl-C ends it.

    mechanism: as of `calibrate`, or "cells"; None: every mechanism alone and in the joint release, and the choice of
    cells alone and in a request. epsilon, delta: claimed; delta by default 1e-5 where it is taken.
    releases: of each of two neighbours, an attack; slow ones take fewer. confidence: of each bound.
    """
    with progress_bar("audit") as show:
        return [Audit(**dict(row, claim=Guarantee(**row["claim"]))) for row in _core.audit(
            "" if mechanism is None else _arrays.text("mechanism", mechanism), _arrays.number("epsilon", epsilon),
            None if delta is None else _arrays.number("delta", delta), _arrays.integer("releases", releases),
            _arrays.number("confidence", confidence), show)]
