"""The evaluation chain of both tracks."""

from duplex_bench.defs.evaluation.factory import evaluation_assets

MULTIPARTY = evaluation_assets("multiparty")
CONVERSATION = evaluation_assets("conversation")
