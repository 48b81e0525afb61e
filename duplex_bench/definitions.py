"""The code location: every asset, check, job and resource of the graph."""

import warnings

import dagster as dg

# In the pinned release observable_source_asset and data versions are in beta, partitioned checks in preview; their
# behaviour is tested.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

from duplex_bench.defs.conversation import assets as conversation  # noqa: E402 - the filter comes first
from duplex_bench.defs.conversation import checks as conversation_checks  # noqa: E402
from duplex_bench.defs.evaluation import assets as evaluation  # noqa: E402
from duplex_bench.defs.evaluation import checks as evaluation_checks  # noqa: E402
from duplex_bench.defs.jobs import JOBS  # noqa: E402
from duplex_bench.defs.multiparty import assets as multiparty  # noqa: E402
from duplex_bench.defs.multiparty import checks as multiparty_checks  # noqa: E402
from duplex_bench.defs.resources import RESOURCES  # noqa: E402
from duplex_bench.defs.results import assets as results  # noqa: E402
from duplex_bench.defs.sensors import SENSORS  # noqa: E402
from duplex_bench.defs.systems import assets as systems  # noqa: E402
from duplex_bench.defs.systems import checks as systems_checks  # noqa: E402

defs = dg.Definitions(
    assets=[
        *dg.load_assets_from_modules([systems, multiparty, conversation, results]),
        *evaluation.MULTIPARTY,
        *evaluation.CONVERSATION,
    ],
    asset_checks=[
        systems_checks.cards_valid,
        *multiparty_checks.CHECKS,
        *conversation_checks.CHECKS,
        *evaluation_checks.CHECKS,
    ],
    jobs=JOBS,
    sensors=SENSORS,
    resources=RESOURCES,
    executor=dg.in_process_executor,
)
