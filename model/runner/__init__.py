"""The kernel's page-table code under a model checker: see model/README.md.

`source` collects the code of an applied tree, `build` compiles it and the checker, `mutants` plants
mutants, `runs` runs scenarios and says what came of them.
"""

from kvmseries.base import paths

ROOM = paths.ROOT / "model"
