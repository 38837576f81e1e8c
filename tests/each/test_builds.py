"""Base, every step and the series of each linux build, on every architecture of it, without a new warning; with W=1 and by
sparse what is changed; and nothing that a series changes is left uncompiled."""

from collections import Counter

import pytest

from kvmseries.base import paths, progress
from kvmseries.kernel import build
from kvmseries.source import catalog, trees
from kvmseries.verify import check, soak
from tests import compiled, extra

pytestmark = pytest.mark.build

# A series without patches has nothing to compare with its base.
LINUX = [series for series in map(catalog.load, catalog.names()) if series.project == "linux" and series.patches]
each = pytest.mark.parametrize("series, arch", [(series.name, arch) for series in LINUX for arch in series.arches])
SOAKED = [
    pytest.param(series.name, arch, overlays, id="-".join([series.name, arch, "+".join(overlays)]))
    for series in LINUX
    for arch, overlays in sorted({(one.arch, one.config) for one in soak.plan(series).configurations})
]

# What sparse says of a function that enters an RCU read section, and leaves it, under one and the same condition, which
# it does not follow.
CONDITIONAL = (
    "arch/arm64/kvm/hyp/pgtable.c: warning: context imbalance in 'kvm_pgtable_walk' - different lock contexts for basic"
    " block",
)


def _kernel(series, arch, count):
    series = catalog.load(series)
    return build.kernel(series, len(series.patches) if count else 0, arch, kernel_tree=extra.own_base(series))


@each
def test_base_and_series_build_without_new_warnings(series, arch):
    found = []
    for count in (0, 1):
        tree = _kernel(series, arch, count).tree
        log = paths.out("logs", f"build-{tree.path.parent.name}-{tree.point}-{arch}-normal.log")
        # Of all files, without line numbers, which the series moves.
        lines = build.warnings(log)
        found.append(build.about("\n".join(lines), {line.partition(":")[0].removeprefix("../") for line in lines}))
    assert not found[1] - found[0]


@each
def test_the_kernel_is_made_of_every_file_that_the_series_changes(series, arch):
    """Or the file compiles with an option that the kernel does not have.  A mistake in one stops make test, then."""
    kernel = _kernel(series, arch, 1)
    changed = compiled.changed(catalog.load(series), kernel.tree.path, arch)
    others = compiled.ALONE.get((series, arch), {})
    assert len(changed) > 2
    assert changed - compiled.read(kernel.image.parents[3]) == set(others)
    for file, how in others.items():
        assert file in compiled.alone(kernel, *how)


@pytest.mark.slow
@each
def test_negative_control_an_error_in_a_file_of_the_series_stops_the_build(series, arch):
    """Of each that is compiled: as the rest of make would find it, since these files are what the kernel is made of."""
    kernel = _kernel(series, arch, 1)
    names = compiled.changed(catalog.load(series), kernel.tree.path, arch)
    names = {name for name in names if name.endswith(".c")} - set(compiled.ALONE.get((series, arch), {}))
    assert names and compiled.not_stopped_by_an_error(series, arch, names) == []


@pytest.mark.slow
@pytest.mark.parametrize("series, arch, overlays", SOAKED)
def test_the_kernel_takes_every_configuration_of_the_soak(series, arch, overlays):
    series = catalog.load(series)
    build.configure(trees.base(series, extra.own_base(series)), arch, overlays)


@pytest.mark.slow
@each
def test_w1_and_sparse_find_nothing_new_in_what_is_changed(series, arch):
    series = catalog.load(series)
    found = Counter(check.new_warnings(series, arch, extra.own_base(series)))
    assert not found - Counter(CONDITIONAL)


@pytest.mark.slow
@each
def test_every_step_builds(series, arch):
    name, series = series, catalog.load(series)
    with progress.single(f"check-steps-{arch}", f"every step of {name} builds for {arch}", 200) as note:
        assert check.builds(series, arch, note, extra.own_base(series), steps=True)


@pytest.mark.slow
@each
def test_every_fix_builds_alone(series, arch):
    name, series = series, catalog.load(series)
    if not series.fixes:
        pytest.skip(f"{name} has no milestone {catalog.FIXES}")
    with progress.single(f"check-alone-{arch}", f"every fix of {name} builds alone for {arch}", 150) as note:
        check.builds_alone(series, arch, note, extra.own_base(series))
