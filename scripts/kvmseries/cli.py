"""The command line of scripts/series: arguments to functions, failures to one line."""

import argparse
import os
import sys
from pathlib import Path

from .base import paths
from .base.errors import Fail, Usage
from .kernel import kconfig
from .model import verbs as model_verbs
from .qemu import verbs as qemu_verbs
from .source import catalog, git
from .verbs import (
    apply_verb,
    base_verb,
    bench_verb,
    boot_verb,
    build_verb,
    calibrate_verb,
    check_verb,
    compare_verb,
    deps_verb,
    export_verb,
    figures_verb,
    hunt_verb,
    list_verb,
    litmus_verb,
    report_verb,
    soak_verb,
    test_verb,
)


class _Parser(argparse.ArgumentParser):
    """Reports mistakes as everything else is reported: in one line."""

    def error(self, message):
        raise Usage(f"{message} (see {self.prog} -h)")


def parser():
    """The parser of the command line."""
    parser = _Parser(
        prog="scripts/series", description="Patch series on a base: fetch, apply, build, boot, "
        "measure, compare. Everything is made under out/.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    _add_trees(verbs)
    _add_kernels(verbs)
    _add_measuring(verbs)
    model_verbs.add(verbs, _verb, _kernel)
    return parser


def _verb(verbs, name, function, text, series=True):
    parser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(function=function)
    if series:
        parser.add_argument("series", help="a directory of patches/, such as v5.10")
    return parser


def _add_trees(verbs):
    _verb(verbs, "list", list_verb, "list the series: base, patches, state", series=False)
    _verb(verbs, "deps", deps_verb, "install the Debian packages that the commands need", series=False)
    parser = _verb(verbs, "fetch", base_verb, "fetch the base tree (cached) and print its path")
    _kernel(parser)
    _version(parser)
    parser = _verb(verbs, "apply", apply_verb, "make a git tree: a tag for the base, one commit for each patch")
    parser.add_argument("dir", metavar="DIR", help="directory to make; new or empty")
    _kernel(parser)
    _version(parser)
    parser.add_argument("--upto", metavar="N", help="only the first N patches, or those up to the milestone N")
    parser.add_argument("--signoff", action="store_true",
                        help="add your Signed-off-by: you certify the DCO")
    parser = _verb(verbs, "export", export_verb, "write patches/ from the commits of a git tree")
    parser.add_argument("tree", nargs="?", metavar="DIR",
                        help="a tree that apply has made (default: the tool's own)")
    parser = _verb(verbs, "check", check_verb,
                   "check that the series applies, passes checkpatch --strict, exports to the same files, "
                   "and builds after each patch")
    parser.add_argument("--arch", help="build for this arch only (default: all of the series)")
    parser.add_argument("--no-build", action="store_true", help="only the checks that build nothing (a minute)")
    _kernel(parser)
    parser = _verb(verbs, "litmus", litmus_verb, "run herd7 on the litmus tests, with "
                   "the memory model of the base")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="only this test and its variants (default: all)")
    _kernel(parser)


def _add_kernels(verbs):
    parser = _verb(verbs, "build", build_verb, "build a kernel and print the path of its image")
    _arch(parser)
    _point(parser)
    _configs(parser)
    _kernel(parser)
    parser = _verb(verbs, "boot", boot_verb,
                   "boot a kernel with the selftests in /tests; run a shell, or COMMAND")
    _arch(parser)
    _point(parser)
    _configs(parser)
    _kernel(parser)
    _machine(parser)
    parser.add_argument("--cpus", type=_positive("--cpus"), default=4, metavar="N",
                        help="CPUs of the machine (default: 4)")
    parser.add_argument("--memory", type=_positive("--memory"), default=3072, metavar="MIB",
                        help="memory of the machine (default: 3072)")
    parser.add_argument("--timeout", type=_positive("--timeout"), default=600, metavar="S",
                        help="time limit of COMMAND in seconds (default: 600)")
    parser.add_argument("--silence", type=_positive("--silence"), default=60, metavar="S",
                        help="a guest that prints nothing for S seconds counts as hung (default: 60)")
    parser.set_defaults(takes_command=True)
    parser.usage = ("scripts/series boot SERIES [options] [-- COMMAND]\n\nwith COMMAND: runs it in "
                    "the guest, prints its output, exits with its status")


def _add_measuring(verbs):
    parser = _verb(verbs, "bench", bench_verb, "measure kernels against each other")
    _arch(parser)
    parser.add_argument("--vcpus", metavar="N,...",
                        help="numbers of vCPUs, up to 64 (default: 1,2,4,8,16; for QEMU 1,2,4,8)")
    parser.add_argument("--test", default="dirty_log_perf_test", help="a test of bench.yaml (default: dirty_log_perf_test)")
    _configs(parser)
    parser.add_argument("--test-args", default="", metavar="ARGS",
                        help="arguments that replace or extend the defaults of "
                        "bench.yaml, as in --test-args='-i 3'")
    parser.add_argument("--only-args", action="store_true",
                        help="run with --test-args alone, without the defaults of bench.yaml")
    parser.add_argument("--case", default="", metavar="NAME",
                        help="a case of bench.yaml: arguments of a published table, or others that are named")
    parser.add_argument("--kernels", metavar="K,...",
                        help="kernels to measure: base, series, upto:MILESTONE, OTHER:base (default: base,series)")
    parser.add_argument("--clock", choices=("virtual", "wall"),
                        help="virtual: every emulated CPU has its own clock, see "
                        "Documentation/measurement.md (default with --accel tcg)")
    parser.add_argument("--model", metavar="M", help="change the model of the virtual clock: a parameter of "
                        "scripts/vtime/model.yaml times a factor, such as line*2")
    parser.add_argument("--sensitivity", action="store_true",
                        help="also run with each parameter of the model halved and doubled")
    parser.add_argument("--slice", type=_positive("--slice"), default=500, metavar="NS",
                        help="how far an emulated CPU may run ahead of the others (default: 500)")
    parser.add_argument("--samples", type=_positive("--samples"), metavar="N",
                        help="rounds in which the kernels take turns (default: bench.yaml's)")
    parser.add_argument("--must-repeat", default="", metavar="METRIC,...",
                        help="times whose rounds must agree, or none: the exit status is 1 where they do not "
                        "(default: all that bench.yaml does not list as differing by chance)")
    parser.add_argument("--retry", type=_natural("--retry"), default=0, metavar="N",
                        help="on a busy host: measure all rounds of such a kernel again where they do not "
                        "agree, up to N times; the results keep the earlier samples")
    parser.add_argument("--no-counts", action="store_true", help="leave out the lock counts")
    parser.add_argument("--no-times", action="store_true", help="leave out the times")
    parser.add_argument("--json", metavar="FILE",
                        help="results file (default: out/results/<series>-<arch>-<test>.json)")
    parser.add_argument("--here", metavar="LABEL", nargs="?", const="",
                        help="run on this machine, booted with the kernel under test, instead of "
                        "in guests; LABEL names it (base, series, upto:MILESTONE) if its "
                        "release does not end in -base, -series or -upto-N")
    _kernel(parser)
    _machine(parser, None)
    _migration(parser)
    parser = _verb(verbs, "calibrate", calibrate_verb,
                   "fit the model's two free parameters to the published column for them")
    _arch(parser)
    _kernel(parser)
    parser = _verb(verbs, "test", test_verb, "run the functional selftests on base and series and compare; for QEMU its "
                   "unit tests and migration qtests")
    parser.add_argument("--arch", help="arm64 (default) or x86_64; for QEMU, what it emulates (default: both)")
    parser.add_argument("--pattern", default="", metavar="TEXT",
                        help="for QEMU: only the tests with TEXT in their name, such as precopy/unix or unit/")
    parser.add_argument("--kernels", default="base,series", metavar="K,...",
                        help="base, series, upto:MILESTONE (default: base,series)")
    _configs(parser)
    _kernel(parser)
    _machine(parser)
    parser = _verb(verbs, "soak", soak_verb,
                   "run selftests and stress tests for hours, on all configurations of soak.yaml, in short parts "
                   "that add up in one file; for QEMU, random live migrations")
    parser.add_argument("--hours", type=float, default=4,
                        help="stop when the file has so many hours (default: 4); for QEMU, stop after so many")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--json", metavar="FILE", help="the file to add to (default: out/results/soak-<series>.json)")
    where.add_argument("--commit-results", action="store_true", help="add to the file in Documentation/results/")
    kernels = parser.add_argument_group("series of linux")
    kernels.add_argument("--for", type=_positive("--for"), dest="minutes", metavar="MINUTES",
                         help="stop this run after so many minutes, at the end of a part")
    kernels.add_argument("--only", action="append", default=[], metavar="CONFIGURATION",
                         help="only this configuration of soak.yaml; may be repeated")
    migrations = parser.add_argument_group("random live migrations of QEMU")
    migrations.add_argument("--migrations", type=_positive("--migrations"), default=200, metavar="N",
                            help="number of migrations (default: 200)")
    migrations.add_argument("--seed", default="1", help="random seed of the migrations (default: 1)")
    migrations.add_argument("--accel", default="tcg", choices=("tcg", "kvm"),
                            help="kvm: on this machine itself, which must be arm64 with KVM")
    parser = _verb(verbs, "hunt", hunt_verb, "run COMMAND again and again on base and series, and count its failures")
    _arch(parser)
    _machine(parser)
    parser.add_argument("--kernels", default="base,series", metavar="K,...",
                        help="base, series, upto:MILESTONE (default: base,series)")
    parser.add_argument("--runs", type=_positive("--runs"), default=200, metavar="N",
                        help="runs of each kernel, earlier ones included (default: 200)")
    parser.add_argument("--batch", type=_positive("--batch"), default=10, metavar="N", help="runs in each boot (default: 10)")
    parser.add_argument("--timeout", type=_positive("--timeout"), default=120, metavar="S",
                        help="time limit of a run in seconds (default: 120)")
    parser.add_argument("--json", required=True, metavar="FILE", help="file with the counts; the same command again continues from it")
    parser.set_defaults(takes_command=True)
    parser.usage = "scripts/series hunt SERIES [options] -- COMMAND"
    parser = _verb(verbs, "report", report_verb, "print tables of results and write out/report/index.html",
                   series=False)
    parser.add_argument("files", nargs="+", metavar="FILE", help="results files of bench")
    parser.add_argument("--picture", metavar="PNG",
                        help="also draw the plot of growth; for results of aging or merging only, theirs")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--ascii", action="store_true", help="print the table in ASCII, for a cover letter")
    parser.add_argument("--quiet", action="store_true", help="write the page, print no table")
    parser = _verb(verbs, "compare", compare_verb, "list what is better or worse in B than in A, beyond "
                   "the spread; the exit status is 1 if anything is worse", series=False)
    parser.add_argument("before", metavar="A", help="results file of bench")
    parser.add_argument("after", metavar="B", help="results file of bench")


    parser = _verb(verbs, "figures", figures_verb, "list the figures that README, cover letters and documents quote, "
                   "with the results that they follow from; the exit status is 1 if one is wrong", series=False)
    parser.add_argument("--write", action="store_true", help="put the figures of the results into the texts, and name the "
                        "sentences that must be read again")
    parser.add_argument("--measure", action="store_true", help="print the commands that measure old results again, or "
                        "those of too few rounds, in order, and how long they take")
    parser.add_argument("--strict", action="store_true", help="count old results, and those of too few rounds, as wrong")


def _arch(parser):
    parser.add_argument("--arch", default="arm64", help="arm64 (default) or x86_64")


def _point(parser):
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--base", action="store_true", help="without the series")
    group.add_argument("--upto", metavar="N", help="with the first N patches, or those up to the milestone N")


def _configs(parser):
    parser.add_argument("--config", action="append", default=[], metavar="NAME",
                        help="overlay on the normal kernel: lockstat, debug, kcsan, 64k; "
                        "may be repeated")


def _kernel(parser):
    parser.add_argument("--kernel", default=os.environ.get("KERNEL") or None, metavar="TREE",
                        help="use your own git tree or tarball as the base; it is only read "
                        "(default: $KERNEL)")


def _version(parser):
    parser.add_argument("--version", metavar="V", help="use this version of patches/<series>/base, "
                        "not the first")


def _machine(parser, cpu="max"):
    parser.add_argument("--cpu", default=cpu, help="QEMU's CPU: max, cortex-a72, ... (default: max; "
                        "in virtual time neoverse-n1, which the model describes)")
    parser.add_argument("--accel", default="tcg", choices=("tcg", "kvm"),
                        help="kvm needs a host of the same arch with nested virtualisation")
    parser.add_argument("--param", action="append", default=[], metavar="WORD",
                        help="kernel parameter, such as kvm_amd.npt=0; may be repeated")


def _migration(parser):
    group = parser.add_argument_group(
        "live migrations of QEMU", "A guest that dirties memory is migrated over a Unix socket; with --accel "
        "kvm by QEMUs on this machine itself, otherwise by QEMUs in an emulated one.")
    group.add_argument("--rings", default="bitmap,1024,4096,65536", metavar="N,...",
                       help="sizes of the dirty ring (default: bitmap,1024,4096,65536)")
    group.add_argument("--working-set", default="2,8", metavar="MIB,...", help="memory that the guest dirties (default: 2,8)")
    group.add_argument("--rate", type=_natural("--rate"), default=2000, metavar="PAGES/S",
                       help="pages that the guest dirties, 0: as fast as it can (default: 2000)")
    group.add_argument("--bandwidth", type=_above_0("--bandwidth"), default=2.6, metavar="MB/S",
                       help="limit of the bandwidth (default: 2.6)")
    group.add_argument("--downtime", type=_positive("--downtime"), default=300, metavar="MS",
                       help="limit of the downtime (default: 300)")
    group.add_argument("--limit", type=_positive("--limit"), default=120, metavar="S",
                       help="give a migration up after so long (default: 120)")


def _natural(option):
    def convert(text):
        if not text.isdecimal():
            raise Usage(f"{option} {text}: give a number from 0 on")
        return int(text)
    return convert


def _above_0(option):
    def convert(text):
        try:
            number = float(text)
        except ValueError:
            number = 0
        if not 0 < number < 1e6:
            raise Usage(f"{option} {text}: give a number above 0")
        return number
    return convert


def _positive(option):
    def convert(text):
        if not text.isdecimal() or int(text) < 1:
            raise Usage(f"{option} {text}: give a number from 1 on")
        return int(text)
    return convert


def main(arguments=None):
    """Run the command line `arguments` (default: sys.argv); returns the exit status."""
    try:
        arguments = list(sys.argv[1:] if arguments is None else arguments)
        git.forget_environment()
        command = None
        if "--" in arguments:
            # argparse's own way to take the rest would take options that come before it, too.
            command = arguments[arguments.index("--") + 1:]
            arguments = arguments[:arguments.index("--")]
        options = parser().parse_args(arguments)
        if command is not None and not getattr(options, "takes_command", False):
            raise Usage(f"{options.verb} takes no command after --")
        options.command = command or []
        if hasattr(options, "series"):
            options.series = catalog.load(options.series)
            if options.series.project == "qemu":
                options.function = qemu_verbs.function(options)
            elif options.verb == "test":
                if options.pattern:
                    raise Usage("--pattern is for series of QEMU")
                options.arch = options.arch or "arm64"
            if getattr(options, "arch", None):
                catalog.check_arch(options.series, options.arch)
            if getattr(options, "arch", None) and options.series.project == "linux":
                # Before minutes of work; the tree's version is not known yet.
                kconfig.load(options.arch, getattr(options, "config", []), options.series.kernel)
        return options.function(options) or 0
    except Fail as error:
        print(f"series: error: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("series: interrupted; repeat the command to go on where it stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"series: error: {paths.os_fail(error, Path.cwd())}", file=sys.stderr)
        return 1
