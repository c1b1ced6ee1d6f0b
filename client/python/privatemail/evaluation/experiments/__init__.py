"""The experiments of an evaluation, by name."""

from typing import Callable, Dict, List

from privatemail.errors import InvalidArgument
from privatemail.evaluation.baselines import Baseline
from privatemail.evaluation.experiments import ablation, attacks, cells, convergence, recall, related, settings
from privatemail.evaluation.study import Experiment
from privatemail.evaluation.sweep import Stage

_ATTACKS = "attacks"


def _alone(create: Callable[[Stage], Experiment]) -> Callable[[Stage, List[Baseline]], Experiment]:
    return lambda stage, _: create(stage)


# In the order of a report.
_EXPERIMENTS: Dict[str, Callable[[Stage, List[Baseline]], Experiment]] = {
    "recall": recall.recall,
    "cells": cells.cells,
    "ablation": _alone(ablation.ablation),
    "convergence": _alone(convergence.convergence),
    "settings": _alone(settings.settings),
    "alignment": _alone(convergence.alignment),
    "inference-privacy": _alone(related.inference_privacy),
    _ATTACKS: _alone(attacks.attacks),
    "bounded-gaussian": _alone(related.bounded_gaussian),
}
NAMES = ", ".join(_EXPERIMENTS)


def select(stage: Stage, names: str, with_attacks: bool, baselines: List[Baseline]) -> List[Experiment]:
    """Experiments in the order of a report. names: with commas between; empty: all, the attacks only with_attacks."""
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in _EXPERIMENTS:
            raise InvalidArgument(f'--experiments must be some of {NAMES}, but has "{name}"')
    return [create(stage, baselines) for name, create in _EXPERIMENTS.items()
            if name in wanted or (with_attacks if name == _ATTACKS else not wanted)]
