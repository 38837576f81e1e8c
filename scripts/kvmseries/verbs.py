"""What each verb of scripts/series does with its options; cli.py says what those are."""

import os
import shlex
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import report
from .base import debian, paths
from .base.errors import Fail, Usage
from .base.progress import say
from .data import repeat, results
from .figures import compute, judge
from .guest import image, machine as machines, run as guest, vtime
from .kernel import build, kconfig, selftests, toolchain
from .measure import bench, calibrate, here
from .report import compare
from .source import catalog, export, trees
from .verify import check, functional, hunt, litmus, soak, soakfile


def _count(options):
    """Number of patches that --base and --upto ask for."""
    if options.base:
        return 0
    return len(options.series.patches) if options.upto is None else options.series.upto(options.upto)


def list_verb(_options):
    """scripts/series list"""
    view = Table("series", "base", "arches", "patches", "milestones", "state")
    for name in catalog.names():
        series = catalog.load(name)
        key = f"{name}-{series.versions[0].key}" if series.versions else name
        made = sorted(path.name for path in paths.out("trees", key).glob("*")
                      if (path / ".git").exists())
        view.add_row(name, series.kernel, " ".join(series.arches), str(len(series.patches)),
                     " ".join(f"{step}={count}" for step, count in series.milestones.items()),
                     f"trees: {' '.join(made)}" if made else "not fetched")
    _print(view)


def deps_verb(_options):
    """scripts/series deps"""
    native = [f"build-{arch}" for arch in catalog.ARCHES if not toolchain.prefix(arch)]
    debian.install(*(group for group in debian.GROUPS if group not in native))
    say("everything is installed")


def base_verb(options):
    """scripts/series fetch"""
    print(trees.base(options.series, options.kernel, options.version).path)


def apply_verb(options):
    """scripts/series apply"""
    series = options.series
    count = len(series.patches) if options.upto is None else series.upto(options.upto)
    path = trees.copy(series, options.dir, count, options.kernel, options.version, options.signoff)
    say(f"{count} of {len(series.patches)} patches of {series.name}, branch kvm-{series.name}, "
        "tag base:")
    print(path)


def export_verb(options):
    """scripts/series export"""
    count = export.export(options.series, options.tree)
    say(f"{count} patches in {options.series.path}")


def check_verb(options):
    """scripts/series check"""
    series = options.series
    check.every(series, [options.arch] if options.arch else series.arches, check, "check", (90, 30, 300),
                not options.no_build, options.kernel)


def litmus_verb(options):
    """scripts/series litmus"""
    every = litmus.tests()
    chosen = [test for test in every if not options.tests or test.name in options.tests
              or test.twin_of in options.tests]
    unknown = set(options.tests) - {test.name for test in every}
    if unknown:
        raise Usage(f"no test '{sorted(unknown)[0]}' in {' or '.join(map(str, litmus.FOLDERS))}")
    program = litmus.herd()
    base = trees.base(options.series, options.kernel)
    view = Table("test", "model", "expected", "herd7", "s")
    complaints = litmus.unpaired(every)
    for test in chosen:
        verdict = litmus.run(program, test, base.path / "tools/memory-model")
        complaints.append(litmus.complaint(test, verdict))
        view.add_row(test.name, test.model, test.result, verdict.result, f"{verdict.seconds:.2f}")
    _print(view)
    complaints = list(filter(None, complaints))
    for complaint in complaints:
        say(complaint)
    if complaints:
        raise Fail(f"{len(complaints)} of the litmus tests are not as expected, the first: "
                   f"{complaints[0]}")
    say(f"{len(chosen)} tests as expected by herd7 {program.version}; LKMM is that of linux "
        f"{base.version}")


def build_verb(options):
    """scripts/series build"""
    kernel = build.kernel(options.series, _count(options), options.arch, options.config,
                          options.kernel)
    say(f"linux {kernel.release} for {kernel.arch} ({kernel.config.name}):")
    print(kernel.image)


def boot_verb(options):
    """scripts/series boot"""
    machine = machines.Machine(options.arch, options.cpu, options.accel, options.cpus,
                               options.memory, tuple(options.param))
    machines.check(machine)
    kernel = build.kernel(options.series, _count(options), options.arch, options.config,
                          options.kernel)
    initrd = image.base(options.arch, selftests.build(options.series, options.arch, options.kernel))
    command = options.command
    if not command:
        line = machines.command(machine, kernel, initrd)
        say(shlex.join(line))
        sys.stdout.flush()
        os.execvp(line[0], line)
    # Through a shell, so that one quoted argument may be a pipeline.
    words = command if len(command) > 1 else ["sh", "-c", command[0]]
    name = f"boot-{options.arch}-{os.getpid()}"
    result = guest.run(kernel, initrd, machine, [("command", options.timeout, words)], name,
                       silence=options.silence)
    outcome = result.outcomes[0]
    sys.stdout.write(outcome.output)
    for line in result.splats:
        say(f"the kernel reported: {line}")
    if outcome.status == 124:
        raise Fail(f"the command ran out of time ({options.timeout} s; see {result.folder})")
    paths.remove(result.folder)
    return outcome.status


def bench_verb(options):
    """scripts/series bench"""
    series = options.series
    entry = bench.settings(options.test)
    kernels = options.kernels or ("base,series" if series.patches else "base")
    points = catalog.points(series, kernels)
    if options.no_counts and options.no_times:
        raise Usage("--no-counts and --no-times leave nothing to measure")
    if options.case and (options.test_args or options.only_args):
        raise Usage("--case brings its own arguments: no --test-args or --only-args")
    case = bench.case(options.test, options.case)
    extra = case["args"] or options.test_args
    line = bench.arguments(options.test, options.arch, extra, series.kernel, options.only_args)
    clock = options.clock or ("virtual" if options.accel == "tcg" and options.here is None
                              else "wall")
    if clock == "wall" and (options.sensitivity or options.model or options.must_repeat or options.retry):
        raise Usage("--sensitivity, --model, --must-repeat and --retry are for --clock virtual")
    if clock == "virtual" and options.here is not None:
        raise Usage("--here runs on this machine, whose clock is the wall's: no --clock virtual")
    if options.sensitivity and options.model:
        raise Usage("--sensitivity runs all models: no --model")
    models = (options.model or vtime.NOMINAL,)
    if options.sensitivity:
        models = (vtime.NOMINAL, *vtime.variants(options.arch))
    for name in options.config:
        if name in ("lockstat", "normal"):
            raise Usage(f"--config {name}: bench builds the normal and the lockstat kernel itself")
    job = bench.Job(
        series=series, arch=options.arch, test=options.test, line=tuple(line),
        vcpus=bench.vcpu_counts(options.vcpus or "1,2,4,8,16"), points=points,
        samples=options.samples or entry["samples"],
        configs=tuple(options.config), counts=not options.no_counts, times=not options.no_times,
        cpu=options.cpu or case.get("cpu") or (vtime.CPUS[options.arch] if clock == "virtual" else "max"),
        accel=options.accel, params=tuple(options.param), kernel=options.kernel, clock=clock,
        models=models, slice_ns=options.slice, extra=(extra, options.only_args),
        must=repeat.metrics(options.must_repeat), retries=options.retry)
    target = Path(options.json) if options.json else paths.out("results", "-".join(
        [series.name, options.arch, options.case or options.test]) + ".json")
    _check_writable(target)
    begin, before = time.monotonic(), bench.state(job)
    if options.here is not None:
        if options.param or options.config or options.no_counts or options.no_times:
            raise Usage("--here runs on the kernel that is booted: no --param, --config, "
                        "--no-counts or --no-times")
        label = options.here or here.label()
        catalog.points(series, label)
        runs, versions = here.run(job, label)
        machine, made_of = here.host(versions), lambda: here.made_of(job, label)
    else:
        machines.check(machines.Machine(options.arch, job.cpu, options.accel, clock=clock,
                                        model=models[0]))
        runs, versions = bench.run(job)
        machine, made_of = bench.host(job, versions), lambda: bench.made_of(job)
    changed = bench.state(job) != before
    if changed:
        say("patches/, the guest or the virtual clock have changed meanwhile: these results are of an unknown state")
    results.save(target, machine, runs, {
        "ids": {} if changed else made_of(), "seconds": round(time.monotonic() - begin), "command": results.command(
            [*sys.argv[1:], *(["--kernel", options.kernel] if options.kernel and "--kernel" not in sys.argv else [])])})
    report.print_table([results.load(target)], _stdout())
    if clock == "virtual" and job.samples < 2:
        say("one round: whether virtual time repeats was not checked")
    say(f"results in {target}")
    failed = repeat.failed(runs, job.must)
    if failed:
        raise Fail(repeat.complaint(failed))


def calibrate_verb(options):
    """scripts/series calibrate"""
    wanted = calibrate.column(options.series, options.arch)
    runs, _ = bench.run(calibrate.job(options.series, options.arch, wanted, options.kernel))
    found = calibrate.fit(runs, wanted, options.arch)
    say(f"{wanted.what}, ns a page, model.yaml as it is: " + ", ".join(
        f"{count} vCPUs {error:+.1%}" for count, error in found.errors.items()))
    for name, (now, better) in found.values.items():
        print(f"{name}: {now:.4g} ns, fits best at {better:.4g} ns")
    say(f"errors that remain: {found.residual:.1%} (root mean square); the values are in "
        "scripts/vtime/model.yaml")


def test_verb(options):
    """scripts/series test"""
    points = catalog.points(options.series, options.kernels)
    machines.check(machines.Machine(options.arch, options.cpu, options.accel))
    verdicts, complaints, machine = functional.run(
        options.series, options.arch, points, options.cpu, options.accel, options.config,
        options.param, options.kernel)
    _print(functional.table(verdicts, [point.label for point in points]))
    config = kconfig.name(options.config)
    target = paths.out("results",
                       f"{options.series.name}-{options.arch}-tests-{options.cpu}-{config}.json")
    functional.save(target, machine, verdicts, {
        "series": options.series.name, "arch": options.arch, "cpu": options.cpu,
        "accel": options.accel, "config": config, "params": options.param})
    if complaints:
        for complaint in complaints:
            say(complaint)
        raise Fail(f"{len(complaints)} complaint{'s' if len(complaints) > 1 else ''}, the first: "
                   f"{complaints[0]} (see {paths.out('runs', 'x').parent})")
    say(f"series is as base; results in {target}")


def soak_verb(options):
    """scripts/series soak"""
    if not options.hours > 0:
        raise Usage(f"--hours {options.hours}: give a number above 0")
    target = soakfile.target(options, options.series.name)
    done = soak.run(options.series, target, options.hours, options.minutes, options.only, options.accel)
    soak.verdict(done, target)
    say(f"{sum(part['seconds'] for part in done) / 3600:.2f} hours in {len(done)} parts; results in {target}")


def hunt_verb(options):
    """scripts/series hunt"""
    if not options.command:
        raise Usage("hunt needs a command: -- /tests/NAME ARGUMENT...")
    wanted = hunt.Hunt(options.arch, options.cpu, tuple(options.param), tuple(options.command), options.timeout,
                       options.accel)
    machines.check(machines.Machine(options.arch, options.cpu, options.accel))
    data = hunt.run(options.series, wanted, options.kernels, options.runs, options.batch, Path(options.json))
    for label, counts in data["kernels"].items():
        failed = ", ".join(f"{times} {why}" for why, times in counts["failures"].items())
        print(f"{label}: {counts['runs']} runs in {counts['boots']} boots; failed: {failed or 'none'}")


def report_verb(options):
    """scripts/series report"""
    loaded = [results.load(path) for path in options.files]
    commands = [data["made"]["command"] for data in loaded if data["made"]["command"]]
    if options.markdown:
        print(report.markdown_table(loaded), end="")
    elif options.ascii:
        print(report.ascii_table(loaded), end="")
    elif not options.quiet:
        report.print_table(loaded, _stdout())
    page = report.write_page(loaded, paths.out("report", "index.html").parent, commands)
    if options.picture:
        report.plot_png(loaded, Path(options.picture))
    say(f"page: {page}")


def compare_verb(options):
    """scripts/series compare"""
    files = options.before, options.after
    comparison = compare.compare(*map(results.load, files), files)
    _print(compare.view(comparison))
    print(compare.verdict(comparison))
    return comparison.status


def figures_verb(options):
    """scripts/series figures"""
    data = judge.load()
    files = compute.Files(data["results"])
    judged = [judge.judge(data, files, where, strict=options.strict) for where in data["texts"]]
    if options.write:
        for one in judged:
            judge.write(one)
        _print_lines(judge.reading(judged))
        judged = [judge.judge(data, files, where, strict=options.strict) for where in data["texts"]]
    problems = [line for one in judged for line in one.problems + judge.unsaid(data, files, one)]
    if options.measure:
        _print_lines(judge.plan(data, files, judged))
    elif not options.write:
        _print_lines(judge.table(judged))
    if problems:
        _print_lines(problems)
        raise Fail(f"{len(problems)} of the figures' texts are not right, the first: {problems[0]}")


def _print_lines(lines):
    for line in lines:
        print(line)


def _check_writable(target):
    """Find out before minutes of work that its result cannot be kept."""
    if target.is_dir():
        raise Usage(f"--json {target} is a directory: name a file")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise paths.os_fail(error, target.parent) from None
    if not os.access(target.parent, os.W_OK):
        raise Fail(f"no permission to write {target.parent}: choose another --json")


def _stdout():
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def _print(view):
    _stdout().print(view)
