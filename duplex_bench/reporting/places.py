"""Names of files and folders by which a report, a release bundle and a run are known."""

from typing import Final

TABLES_FOLDER: Final = "tables"
REPORT_MARKER: Final = "report.json"
RELEASE_MARKER: Final = "release.json"
# Size and digest of every file of a bundle.
RELEASE_MANIFEST: Final = "manifest.json"
# Where a run tells under which settings and code it was made: ``<RECORDS>/<profile>.json`` in its store.
RECORDS: Final = "runs"
