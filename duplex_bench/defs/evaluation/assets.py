"""The evaluation chain of both tracks."""

from duplex_bench.defs.evaluation.factory import summary_assets, system_assets

MULTIPARTY = [*system_assets("multiparty"), *summary_assets("multiparty")]
CONVERSATION = [*system_assets("conversation"), *summary_assets("conversation")]
