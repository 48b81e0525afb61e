"""Arrays in, numbers out: intervals, paired tests, agreement, power. NaN where a number is undefined (design 10)."""

from duplex_bench.statistics.agreement import cohen_kappa
from duplex_bench.statistics.association import Correlation, auc, spearman
from duplex_bench.statistics.bootstrap import (
    Multiplicities,
    cluster_bootstrap,
    mean_replicates,
    multiplicities,
    paired_cluster_bootstrap,
    percentile_interval,
    percentile_intervals,
    replicates,
)
from duplex_bench.statistics.corrections import bonferroni, holm
from duplex_bench.statistics.intervals import Interval, alike, no_spread_interval, wilson_interval
from duplex_bench.statistics.paired_tests import Equivalence, equivalence_test, mcnemar_exact
from duplex_bench.statistics.power import minimum_detectable_difference
from duplex_bench.statistics.ranking import tie_groups
from duplex_bench.statistics.rates import rate_difference_interval, rate_interval
from duplex_bench.statistics.sign_flips import sign_flip_test, sign_flip_tests
from duplex_bench.statistics.summaries import Quartiles, quartiles
from duplex_bench.statistics.thresholds import otsu_threshold
from duplex_bench.statistics.variance import VarianceComponents, variance_components

__all__ = [
    "Correlation",
    "Equivalence",
    "Interval",
    "Multiplicities",
    "Quartiles",
    "VarianceComponents",
    "alike",
    "auc",
    "bonferroni",
    "cluster_bootstrap",
    "cohen_kappa",
    "equivalence_test",
    "holm",
    "mcnemar_exact",
    "mean_replicates",
    "minimum_detectable_difference",
    "multiplicities",
    "no_spread_interval",
    "otsu_threshold",
    "paired_cluster_bootstrap",
    "percentile_interval",
    "percentile_intervals",
    "quartiles",
    "rate_difference_interval",
    "rate_interval",
    "replicates",
    "sign_flip_test",
    "sign_flip_tests",
    "spearman",
    "tie_groups",
    "variance_components",
    "wilson_interval",
]
