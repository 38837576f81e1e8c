"""The Python side of the virtual-time machine.  Its C is in test_vtime_c.py."""

import re
import subprocess
from types import SimpleNamespace

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import below, DPKG_DEB, wanted, write
from kvmseries.kernel import toolchain
from kvmseries.vm import tcgplugin
from vtime import vtime

ARCHES = ("arm64", "x86_64")


@pytest.mark.parametrize("arch", ARCHES)
def test_every_parameter_is_the_instruments_and_says_what_it_is_and_where_from(arch):
    model, table = vtime.parameters(arch), (vtime.SOURCE / "costs.c").read_text(encoding="utf-8")
    assert set(model) <= set(re.findall(r'\{ "(\w+)", &costs\.', table))
    for name, entry in model.items():
        assert set(entry) <= {"ns", "what", "source", "low", "high", "fitted", "sensitivity"}, name
        assert isinstance(entry["ns"], (int, float)) and entry["ns"] > 0, name
        assert entry["what"].strip() and entry["source"].strip(), name
        assert ("low" in entry) == ("high" in entry), name
        assert entry.get("low", 0) <= entry["ns"] <= entry.get("high", entry["ns"]), name


def test_a_variant_changes_its_parameter_alone():
    plain, changed = vtime.parameters("arm64"), vtime.parameters("arm64", "line*2.5")
    assert changed.pop("line")["ns"] == 2.5 * plain.pop("line")["ns"]
    assert changed == plain


@pytest.mark.parametrize("variant", ["dvm_sync*0.1", "dvm_busy*100"])
def test_nothing_is_busy_longer_than_it_takes(variant):
    model = vtime.parameters("arm64", variant)
    assert model["dvm_busy"]["ns"] == model["dvm_sync"]["ns"]


@pytest.mark.parametrize(
    "variants, line",
    [
        # PAUSE is of x86.
        (
            ["", "line", "line*", "line*x", "line*-1", "*2", "nope*2", "line*2*2", "line * 2", "pause*2"],
            "unknown model '{}': nominal, or one of atomic, dc, ",
        ),
        (
            ["line*0", "line*0.0", "line*0.001", "line*101"],
            "model '{}': the factor of line (47 ns) is a number from 0.01 to 100",
        ),
    ],
)
def test_a_variant_that_is_none_is_answered_with_what_there_is(variants, line):
    for variant in variants:
        with pytest.raises(Usage, match="^" + re.escape(line.format(variant))):
            vtime.parameters("arm64", variant)


@pytest.mark.parametrize("arch", ARCHES)
def test_variants_halve_and_double_each_parameter_of_the_machine(arch):
    found = vtime.variants(arch)
    assert len(set(found)) == len(found)
    assert {name.split("*")[0] for name in found} == set(vtime.parameters(arch)) - {"wfe"}
    for name in found:
        assert vtime.options(arch, name) != vtime.options(arch)


def test_options_are_whole_picoseconds(monkeypatch, tmp_path):
    write(tmp_path / "model.yaml", "arm64: {insn: {ns: 0.2154}, line: {ns: 47}}\n")
    monkeypatch.setattr(vtime, "SOURCE", tmp_path)
    assert vtime.options("arm64") == "insn=215,line=47000"
    assert vtime.options("arm64", "line*0.5") == "insn=215,line=23500"


def test_it_is_compiled_once_for_each_source(program, monkeypatch, tmp_path):
    program(
        "gcc", f'while [ $# -gt 1 ]; do [ "$1" = -o ] && echo x >> "$2"; shift; done\necho x >> \'{tmp_path}/count\'\n'
    )
    write(tmp_path / "vtime/a.c", "int a;\n")
    monkeypatch.setattr(vtime, "SOURCE", tmp_path / "vtime")
    first = vtime.library()
    assert vtime.library() == first and first.exists()
    write(tmp_path / "vtime/b.h", "int b;\n")
    assert vtime.library() != first
    assert (tmp_path / "count").read_text(encoding="utf-8") == "x\nx\n"


def _version(number):
    return f"echo 'QEMU emulator version {number} (Debian)'\necho more\n"


@pytest.fixture
def backport(program, monkeypatch, tmp_path):
    """backport(number): the backports have this QEMU; returns the list of what was fetched."""
    program("dpkg-deb", DPKG_DEB)
    fetched = []

    def have(number):
        write(tmp_path / "pkg/usr/bin/qemu-system-aarch64", f"#!/bin/sh\n{_version(number)}").chmod(0o755)
        write(tmp_path / "pkg/usr/lib/some-triplet/qemu/accel.so", "")
        subprocess.run(["tar", "-cf", str(tmp_path / "x.deb"), "-C", str(tmp_path / "pkg"), "usr"], check=True)

        def fetch(package):
            fetched.append(package)
            return tmp_path / "x.deb"

        monkeypatch.setattr(debian, "fetch_backport", fetch)
        return fetched

    return have


@pytest.mark.parametrize("number", ["9.2.0", "10.0.2", "10.2.1"])
def test_the_machines_own_qemu_is_taken_if_it_is_new_enough(program, backport, tmp_path, number):
    fetched = backport("99.0")
    program("qemu-system-aarch64", _version(number))
    found = vtime.qemu("arm64")
    assert found.program == str(tmp_path / "bin/qemu-system-aarch64")
    said = vtime.description("arm64")
    assert said["qemu"] == f"QEMU emulator version {number} (Debian)"
    assert said["parameters"]["line"].keys() == {"ns", "what", "source"}
    assert (found.environment(), found.arguments(), fetched) == ([], [], [])


@pytest.mark.parametrize("script", [_version("7.2.22"), _version("9.1.9"), _version("11.0.0"), "exit 1\n"])
def test_a_backport_stands_in_for_an_old_qemu_and_for_a_newer_one(program, backport, script):
    fetched = backport("10.0.2")
    program("qemu-system-aarch64", script)
    folder = paths.out("cache/backports-qemu-system-arm")
    for _ in range(2):
        found = vtime.qemu("arm64")
        assert found.program == str(folder / "usr/bin/qemu-system-aarch64")
        assert found.environment() == [f"QEMU_MODULE_DIR={folder}/usr/lib/some-triplet/qemu"]
        assert found.arguments()[:2] == ["-L", str(folder / "usr/share/qemu")]
    assert fetched == ["qemu-system-arm", "qemu-system-common", "qemu-system-data"]


def _refused(reason):
    """No QEMU of virtual time can be had, for this reason, and nothing of a backport is kept."""
    with pytest.raises(Fail, match=f"^virtual time needs QEMU 9.2 to 10.2, and .*{reason}$"):
        vtime.qemu("arm64")
    assert not [name for name in below(paths.cache_root()) if "backports-qemu" in name and "locks/" not in name]


@pytest.mark.parametrize(
    "number, reason",
    [
        ("9.1.1", "is QEMU emulator version 9.1.1 .Debian."),
        ("11.0.1", "is QEMU emulator version 11.0.1 .Debian."),
        ("?", "does not run here"),
    ],
)
def test_a_backport_that_is_too_old_or_too_new_is_refused(program, backport, number, reason):
    backport(number)
    program("qemu-system-aarch64", _version("7.2"))
    _refused(f"{reason}: install one of these, or use --clock wall")
    # The next one may be newer.
    backport("10.0.2")
    assert vtime.qemu("arm64").version()[0] == (10, 0)


def test_a_backport_that_cannot_be_had_leaves_nothing(program):
    program("qemu-system-aarch64", _version("7.2"))
    _refused("none can be had: .*Temporary failure resolving.*; install one, or use --clock wall")


SYMBOLS = {
    "n_tty_write": "ffff01",
    "n_tty_write_room": "ffff02",
    "__guest_exit": "ffff03",
    "kvm_mmu_page_fault": "ffff04",
    "__guest_enter": "ffff05",
    "kvm_handle_guest_abort": "ffff06",
    "stage2_map_walker.isra.0": "ffff20",
    "kvm_pgtable_walk": "ffff30",
    "kvm_vm_ioctl": "ffff40",
    "_kvm_pgtable_walk": "ffff50",
    "kvm_set_invalid_pte": "ffff50",
    "kvm_init": "ffff58",
    "__kvm_nvhe_stage2_map": "ffff60",
}
TABLES = [["tables_from", "ffff20"], ["tables_to", "ffff40"], ["tables_from", "ffff50"], ["tables_to", "ffff58"]]


@pytest.fixture
def marks(tmp_path):
    """marks(arch, lacking=None): the words of what vtime.marks() writes for a kernel whose
    System.map has all of SYMBOLS but `lacking`."""

    def run(arch, lacking=None):
        kinds = {name: "t" if name == "__guest_enter" else "T" for name in SYMBOLS}
        lines = [f"{address} {kinds[name]} {name}\n" for name, address in SYMBOLS.items() if name != lacking]
        write(tmp_path / "build/System.map", "".join(lines))
        kernel = SimpleNamespace(arch=arch, image=tmp_path / "build/arch/x/boot/Image", release="7.3.4-base")
        vtime.marks(kernel, tmp_path / "marks")
        return [line.split() for line in (tmp_path / "marks").read_text(encoding="utf-8").splitlines()]

    return run


@pytest.mark.parametrize(
    "arch, names, tables",
    [
        ("arm64", ["n_tty_write", "__guest_exit", "__guest_enter", "kvm_handle_guest_abort"], TABLES),
        ("x86_64", ["n_tty_write", "kvm_mmu_page_fault"], []),
    ],
)
def test_marks_are_what_the_counters_need_and_the_code_that_writes_stage_2_page_tables(marks, arch, names, tables):
    """By whole functions, those that follow each other as one; not the hypervisor's copies."""
    found = marks(arch)
    others = [words for words in found if not words[0].startswith("tables_")]
    assert sorted(others) == sorted([name, SYMBOLS[name]] for name in names)
    assert [words for words in found if words not in others] == tables


@pytest.mark.parametrize(
    "arch, name", [("arm64", "tables"), *((arch, name) for arch in ARCHES for name in vtime._NAMES[arch])]
)
def test_a_kernel_without_what_a_counter_needs_is_refused(marks, monkeypatch, tmp_path, arch, name):
    line = rf"{name}\(\), by which scripts/vtime counts: add its new name .*, or use --clock wall$"
    if name == "tables":
        monkeypatch.setitem(vtime.TABLES, "arm64", "stage3_")
        line = "function that writes page tables: add its"
    with pytest.raises(Fail, match=f"^linux 7.3.4-base has no {line}"):
        marks(arch, name)
    assert not (tmp_path / "marks").exists()


def test_a_kernel_without_a_symbol_table_is_refused(tmp_path):
    kernel = SimpleNamespace(arch="arm64", image=tmp_path / "build/Image", release="7.3.4-base")
    with pytest.raises(Fail, match=f"^{tmp_path}/build/Image has no System.map beside it: build it "):
        vtime.marks(kernel, tmp_path / "marks")
    assert not (tmp_path / "marks").exists()


@pytest.mark.parametrize("arch", ARCHES)
def test_names_of_marks_are_those_that_the_instrument_looks_for(arch):
    source = (vtime.SOURCE / "phases.c").read_text(encoding="utf-8")
    names = re.findall(r'"(\w+)"', source[source.index("symbols[") : source.index("registers[")])
    assert set(vtime._NAMES[arch]) <= set(names)


def test_the_plugin_gets_model_slice_and_files(monkeypatch, tmp_path):
    monkeypatch.setattr(vtime, "library", lambda: "lib.so")
    options = vtime.options("arm64", "line*2")
    assert vtime.plugin("arm64", "line*2", 400, None) == ["-plugin", f"lib.so,{options},slice=400000"]
    assert vtime.plugin("arm64", "nominal", 500, tmp_path)[1].endswith(
        f",slice=500000,counters={tmp_path}/counters.json,marks={tmp_path}/marks"
    )


@pytest.mark.parametrize("compiler", ["gcc", f"{toolchain.prefix('arm64')}gcc"])
def test_it_compiles_without_a_warning(tmp_path, compiler):
    wanted(compiler)
    sources = sorted(vtime.SOURCE.glob("*.c"))
    flags = [*tcgplugin.FLAGS, "-Werror", "-o", tmp_path / "x.so"]
    subprocess.run([compiler, *flags, *sources, "-ldl", "-lpthread"], check=True)
