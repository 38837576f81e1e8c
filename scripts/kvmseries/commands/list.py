"""scripts/series list"""

from rich.table import Table

from ..base import paths
from ..source import catalog
from . import shared

PARAMS: list[object] = []


def run(_options: shared.Options) -> None:
    """Print a table."""
    view = Table("series", "base", "arches", "patches", "milestones", "state")
    for name in catalog.names():
        series = catalog.load(name)
        key = f"{name}-{series.versions[0].key}" if series.versions else name
        made = sorted(path.name for path in paths.out("trees", key).glob("*") if (path / ".git").exists())
        view.add_row(
            name,
            series.kernel,
            " ".join(series.arches),
            str(len(series.patches)),
            " ".join(f"{step}={count}" for step, count in series.milestones.items()),
            f"trees: {' '.join(made)}" if made else "not fetched",
        )
    shared.table(view)
