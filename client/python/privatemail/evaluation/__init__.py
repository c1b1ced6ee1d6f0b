"""What PrivateMail finds on labelled data, at which privacy and cost, and what its releases leak.

    python3 -m privatemail.evaluation evaluate --vectors v.npy --labels l.npy --out report/
    python3 -m privatemail.evaluation tune --vectors anchors.npy --labels l.npy --out settings/

Noise is seeded, so that a run can be repeated, and hides nothing: this package refuses to be in one process with a
client, and has no network channel.

    study         types: data, settings, results, figures
    data, stats   rows and their splits; scores and their intervals
    sweep         conditions over a range of x
    experiments   figures: recall, cells, ablation, convergence, settings, alignment, related mechanisms, attacks
    baselines     other methods that the experiments compare with
    runner        runs jobs on all cores and caches their results
    verdict       the best scheme, beside downloads that send nothing private
    report        HTML, SVG, JSON and CSV
"""

from privatemail import _tuned

__path__[:0] = _tuned.folders("evaluation")
