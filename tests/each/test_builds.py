"""Base, every step and the series build, on every architecture of it, without a new warning; with W=1 and by
sparse what is changed.  Of QEMU the series, for arm64, and on this machine the unit tests that it adds.

Whether every patch does, `scripts/series check SERIES` says: 25 minutes.
"""

from collections import Counter

import pytest

from checks import extra
from kvmseries.base import paths, progress
from kvmseries.kernel import build
from kvmseries.source import catalog, trees
from kvmseries.verify import check, soak

# A series without patches has nothing to compare with its base.
PATCHED = [series for series in map(catalog.load, catalog.names()) if series.patches]
CASES = [
    pytest.param(
        series.name, arch, marks=(pytest.mark.reads(series.name), *(() if extra.quick(series) else (pytest.mark.slow,)))
    )
    for series in PATCHED
    if series.project == "linux"
    for arch in series.arches
]
SOAKED = [
    pytest.param(
        series.name,
        arch,
        overlays,
        marks=() if extra.quick(series) else (pytest.mark.slow, pytest.mark.reads(series.name)),
        id="-".join([*(() if extra.quick(series) else (series.name,)), arch, "+".join(overlays)]),
    )
    for series in PATCHED
    if series.project == "linux"
    for arch, overlays in sorted({(one.arch, one.config) for one in soak.plan(series).configurations})
]
QEMU = [
    pytest.param(series.name, marks=pytest.mark.reads(series.name)) for series in PATCHED if series.project == "qemu"
]

# What sparse says of a function that enters an RCU read section, and leaves it, under one and the same condition, which
# it does not follow.
CONDITIONAL = (
    "arch/arm64/kvm/hyp/pgtable.c: warning: context imbalance in 'kvm_pgtable_walk' - different lock contexts for basic"
    " block",
)


@pytest.mark.build
@pytest.mark.parametrize("name,arch", CASES)
def test_base_and_series_build_without_new_warnings(name, arch):
    series = catalog.load(name)
    found = {}
    for count in (0, len(series.patches)):
        kernel = build.kernel(series, count, arch, kernel_tree=extra.own_base(series))
        tree = kernel.tree
        log = paths.out("logs", f"build-{tree.path.parent.name}-{tree.point}-{arch}-normal.log")
        # Of all files, without line numbers, which the series moves.
        lines = build.warnings(log)
        found[count] = build.about("\n".join(lines), {line.partition(":")[0].removeprefix("../") for line in lines})
    new = found[len(series.patches)] - found[0]
    assert not new


@pytest.mark.build
@pytest.mark.parametrize("name,arch,overlays", SOAKED)
def test_the_kernel_takes_every_configuration_of_the_soak(name, arch, overlays):
    series = catalog.load(name)
    build.configure(trees.base(series, extra.own_base(series)), arch, overlays)


@pytest.mark.build
@pytest.mark.slow
@pytest.mark.parametrize("name,arch", CASES)
def test_w1_and_sparse_find_nothing_new_in_what_is_changed(name, arch):
    series = catalog.load(name)
    found = Counter(check.new_warnings(series, arch, extra.own_base(series)))
    assert not found - Counter(CONDITIONAL)


@pytest.mark.build
@pytest.mark.slow
@pytest.mark.parametrize("name,arch", CASES)
def test_every_step_builds(name, arch):
    series = catalog.load(name)
    with progress.single(f"check-steps-{arch}", f"every step of {name} builds for {arch}", 200) as note:
        assert check.builds(series, arch, note, extra.own_base(series), steps=True)


@pytest.mark.build
@pytest.mark.slow
@pytest.mark.parametrize("name,arch", CASES)
def test_every_fix_builds_alone(name, arch):
    series = catalog.load(name)
    if not series.fixes:
        pytest.skip(f"{name} has no milestone {catalog.FIXES}")
    with progress.single(f"check-alone-{arch}", f"every fix of {name} builds alone for {arch}", 150) as note:
        check.builds_alone(series, arch, note, extra.own_base(series))


@pytest.mark.build
@pytest.mark.slow
@pytest.mark.parametrize("name", QEMU)
def test_qemu_builds_without_warnings_of_what_is_changed(name):
    assert not extra.touched_warnings(catalog.load(name), "arm64")


@pytest.mark.build
@pytest.mark.parametrize("name", QEMU)
def test_qemus_new_unit_tests_pass(name):
    """All of its unit tests and migration qtests, base and series: `scripts/series test qemu-10.0`."""
    found = extra.own_units(catalog.load(name))
    assert found and set(found.values()) == {"pass"}, found
