"""kvm-series, as it is installed: it runs the checkout's scripts/series, or says where to go."""

import subprocess
import sys

from kvmseries.base import paths
from kvmseries.conftest import write

LAUNCHER = paths.ROOT / "scripts/kvm_series.py"


def launch(folder, *words):
    done = subprocess.run(
        [sys.executable, str(LAUNCHER), *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_it_runs_the_tool_of_the_checkout_that_it_is_in(tmp_path):
    write(tmp_path / "scripts/series", '#!/bin/sh\necho "$@"\nexit 3\n')
    (tmp_path / "scripts/series").chmod(0o755)
    (tmp_path / "patches/v5.10").mkdir(parents=True)
    assert launch(tmp_path / "patches/v5.10", "list", "-h") == (3, "list -h\n", "")


def test_outside_of_a_checkout_it_says_where_to_go(tmp_path):
    (tmp_path / "patches").mkdir()
    status, out, err = launch(tmp_path, "list")
    assert (status, out) == (1, "")
    assert err.startswith("kvm-series: error: not in a checkout of the patch series: ") and err.count("\n") == 1
