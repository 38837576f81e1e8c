"""What `scripts/series model` and `scripts/series mutants` do with their options."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..source import trees
from . import build, coverage, mutants, runs

# What the engine must see of relaxed memory, and what it must not: the model's calibration. Load buffering is
# allowed by the kernel's memory model, and never seen: what rests on it is for herd7.
SEEN = ("SB", "MP", "MP+rel", "S", "2+2W", "RMW-RMW", "failed-CAS-stale", "readers-not-ordered")
NOT_SEEN = ("SB+mbs", "MP+rel+rmb", "MP+wmb+rmb", "2+2W+mbs", "R+mbs", "RWC+mbs", "WRC+rel", "CoRR", "xchg-xchg",
            "RMW-atomicity", "CAS-atomicity", "writer-orders", "RCU-MP", "LB")


def check_series(series):
    """Fail unless the model's shims are for this series."""
    if series.name != "v5.10":
        raise Usage(f"the model knows v5.10 only, not {series.name}")


def model_verb(options):
    """scripts/series model"""
    check_series(options.series)
    if options.bound not in (None, "all") and not options.bound.isdecimal():
        raise Usage(f"--bound {options.bound}: give a number, or all")
    if options.schedules < 1:
        raise Usage(f"--schedules {options.schedules}: give a number from 1 on")
    tree = tree_of(options)
    if options.plant:
        plant = Path(options.plant).absolute()
        if not plant.is_file():
            raise Usage(f"--plant {options.plant}: no such file")
        tree = mutants.plant(tree, plant, paths.out("model", "planted", "by-hand"))
    if options.coverage:
        functions = coverage.measure(tree, build.checker())
        for function in functions:
            if function.missed:
                print(function.text)
        say(coverage.summary(functions))
        return
    program, library = runs.ready(tree)
    if options.engine != "loom":
        results = shuttle(program, library, options.scenario, options.engine, options.schedules, options.seed, say)
    else:
        results = loom(program, library, options.scenario, options.bound, say)
    bad = [result for result in results if not result.good]
    for result in bad:
        print(result.trace)
    say(f"{len(results)} scenarios, {sum(r.executions for r in results):,} executions, "
        f"{len({arm for r in results for arm in r.arms})} arms reached")
    if bad:
        raise Fail(f"{len(bad)} of {len(results)} scenarios fail, the first: {bad[0].line}")


def tree_of(options):
    """The path of the tree that --tree or --upto asks for; by default that of the whole series."""
    if options.tree:
        if options.upto or options.kernel:
            raise Usage("--tree excludes --upto and --kernel")
        if not Path(options.tree).is_dir():
            raise Usage(f"--tree {options.tree}: no such directory")
        return Path(options.tree).absolute()
    series = options.series
    count = len(series.patches) if options.upto is None else series.upto(options.upto)
    return trees.worktree(series, count, options.kernel).path


def _chosen(program, names, kinds):
    every = runs.scenarios(program)
    unknown = [name for name in names if name not in {s.name for s in every}]
    if unknown:
        raise Usage(f"no scenario '{unknown[0]}': the model has {', '.join(s.name for s in every if s.kind != 'litmus')}")
    return [s for s in every if (s.name in names if names else s.kind in kinds)]


def loom(program, library, names, bound, told):
    """The Results of loom on the scenarios named (default: all short ones), with the preemption bound given or
    each one's own; `told` gets a line for each."""
    def one(scenario):
        limit = scenario.bound if bound is None else bound
        return runs.run(program, library, scenario.name, "loom", *([] if limit == "all" else [f"bound={limit}"])), limit

    results = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result, limit in pool.map(one, _chosen(program, names, ("short",))):
            told(f"{result.line}{'' if not result.good else ', complete' if limit == 'all' else f', up to {limit} preemption' + 's' * (limit != '1')}")
            results.append(result)
    return results


def shuttle(program, library, names, engine, schedules, seed, told):
    """The Results of shuttle on the scenarios named (default: all long ones)."""
    results = []
    for scenario in _chosen(program, names, ("long",)):
        results.append(runs.run(program, library, scenario.name, engine, f"limit={schedules}", f"seed={seed}"))
        told(f"{results[-1].line}, {engine}, seed {seed}")
    return results


def calibration(program, library):
    """What is not as SEEN and NOT_SEEN say of the engine, a line each."""
    complaints = []
    for names, wanted in ((SEEN, "found"), (NOT_SEEN, "holds")):
        for name in names:
            verdict = runs.run(program, library, name, "loom").verdict
            if verdict != wanted:
                complaints.append(f"{name}: {verdict}, not {wanted}")
    return complaints


def mutants_verb(options):
    """scripts/series mutants"""
    check_series(options.series)
    every = mutants.every()
    unknown = set(options.names) - {mutant.name for mutant in every}
    if unknown:
        raise Usage(f"no mutant '{sorted(unknown)[0]}' in {mutants.FOLDER}")
    chosen = [mutant for mutant in every if not options.names or mutant.name in options.names]
    tree = tree_of(options)
    program, _ = runs.ready(tree)
    outcomes = mutants.judge_all(chosen, tree, program, lambda outcome: say(outcome.line))
    say(summary(outcomes))
    bad = [outcome for outcome in outcomes if not outcome.good]
    if bad:
        raise Fail(f"{len(bad)} of {len(outcomes)} mutants are not found, the first: {bad[0].line}")


def summary(outcomes):
    """Mutants found by kind, and those that are known to survive: a few lines."""
    kinds = Counter(outcome.mutant.kind for outcome in outcomes)
    killed = Counter(outcome.mutant.kind for outcome in outcomes if outcome.killed)
    text = ", ".join(f"{kind} {killed[kind]}/{count}" for kind, count in sorted(kinds.items()))
    return f"{sum(killed.values())} of {len(outcomes)} mutants found: {text}"


def proof_verb(options):
    """scripts/series proof"""
    check_series(options.series)
    tree = tree_of(options)
    program, library = runs.ready(tree)
    complaints = calibration(program, library)
    results = loom(program, library, (), None, lambda line: None)
    random = shuttle(program, library, (), "random", options.schedules, 1, lambda line: None)
    outcomes = mutants.judge_all(mutants.every(), tree, program)
    print(screen(runs.scenarios(program), results, random, outcomes, complaints))
    bad = complaints + [r.line for r in results + random if not r.good] + [o.line for o in outcomes if not o.good]
    if bad:
        raise Fail(f"{len(bad)} things are not as they must be, the first: {bad[0]}")


def screen(scenarios, results, random, outcomes, complaints):
    """What `make proof` ends with: one screen of text."""
    bounds = {scenario.name: scenario.bound for scenario in scenarios}
    complete = [r for r in results if bounds[r.name] == "all"]
    others = Counter(bounds[r.name] for r in results if bounds[r.name] != "all")
    lines = [f"calibration   {len(SEEN) + len(NOT_SEEN)} litmus tests, {len(complaints) or 'none'} not as expected; load buffering is not seen"]
    lines.append(f"loom          {len(results)} scenarios, {sum(r.executions for r in results):,} executions, "
                 f"{sum(r.good for r in results)} hold")
    lines.append(f"              {len(complete)} complete; " + ", ".join(f"{n} up to {bound} preemption" + "s" * (bound != "1") for bound, n in sorted(others.items())))
    lines.append(f"shuttle       {len(random)} scenarios, {sum(r.executions for r in random):,} random schedules, "
                 f"{sum(r.good for r in random)} hold")
    lines.append(f"arms          {len({arm for r in results + random for arm in r.arms})} reached, "
                 f"{len({arm for r in results for arm in r.arms if arm.startswith('lost cmpxchg')})} of them a cmpxchg that is lost")
    lines.append(f"mutants       {summary(outcomes)}")
    for outcome in outcomes:
        if not outcome.killed:
            lines.append(f"              {outcome.line}")
    lines.append("Every execution of these scenarios under the engine's memory model: what that leaves out is in model/README.md.")
    return "\n".join(lines)


def add(parsers, verb, kernel):
    """The verbs' options: `verb` and `kernel` are cli.py's helpers."""
    parser = verb(parsers, "model", model_verb, "run the stage-2 code of a tree under a model checker: see model/README.md")
    _tree(parser, kernel)
    parser.add_argument("--plant", metavar="PATCH", help="add this patch, a mistake that must be found")
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME",
                        help="run this scenario; may be repeated (default: all short ones; with random and pct the long ones)")
    parser.add_argument("--engine", choices=("loom", "random", "pct"), default="loom",
                        help="loom: every execution; random, pct: schedules of shuttle")
    parser.add_argument("--bound", metavar="N", help="for loom: at most N preemptions, or all (default: each scenario's own)")
    parser.add_argument("--schedules", type=int, default=2000, metavar="N", help="number of schedules, for random and pct (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="random seed, for random and pct (default: 1)")
    parser.add_argument("--coverage", action="store_true", help="list the lines of the kernel's functions that no short scenario runs")
    parser = verb(parsers, "mutants", mutants_verb, "check that the model finds each mistake of model/mutants")
    _tree(parser, kernel)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants (default: all)")
    parser = verb(parsers, "proof", proof_verb, "run the whole model: calibration, all scenarios, all mutants; one screen")
    _tree(parser, kernel)
    parser.add_argument("--schedules", type=int, default=5000, metavar="N", help="random schedules of each long scenario (default: 5000)")


def _tree(parser, kernel):
    parser.add_argument("--tree", metavar="DIR", help="a tree that apply has made (default: the tool's own)")
    parser.add_argument("--upto", metavar="N", help="only the first N patches, or those up to the milestone N")
    kernel(parser)
