"""Planted results of experiments of the evaluation, and the lines of its figures."""


def planted(experiment, scores, targets):
    """Results with one score for all targets of a job, by the beginning of its key, else .5; splits differ alike everywhere."""
    results = []
    for job in experiment.jobs:
        found = next((score for start, score in scores.items() if job.key.startswith(start)), .5)
        values = [found + (.01 if job.key.endswith("seed 2") else 0)] * targets
        results.append({"class_share": values, "hit": values, "fidelity": values, "residual": [0], "unanswered": [0],
                        "cells": [7], "items": [30]})
    return results


def series(panel, name):
    return next(one for one in panel.series if one.name == name)
