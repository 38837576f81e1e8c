"""What the checks of traces of stage 2 share: tools-testing-selftests-kvm/stage2_trace."""

from checks import guests
from kvmseries.base import paths, progress
from kvmseries.vm import machine, run as guest
from stage2_trace import stage2check

# Runs of one kind at most: on a host that is loaded by others little happens in one.
MOST = 4


def trace(label, kernel, command, params=(), cpu="max", name="v5.10"):
    """(guest.Outcome, stage2check.Report) of a command and its trace; `name`: the series whose selftests it runs."""
    archive = guests.initrd(name=name)
    with progress.single("stage2-trace", f"trace of stage 2: {label}", 25) as note:
        result = guest.run(
            kernel,
            archive,
            machine.Machine("arm64", cpu, params=(machine.SWAP, *params), trace=True),
            [("trace", 300, list(command))],
            f"stage2-trace-{label}",
            note,
        )
    assert not result.splats
    file = result.folder / "trace"
    with open(file, encoding="ascii") as lines:
        report = stage2check.check(lines)
    # Some MB each; what is found quotes the numbers of its lines.
    paths.remove(file)
    return result.outcomes[0], report


def keeps_the_rules(label, kernel, command, kinds, **words):
    """Run until each of the kinds of debts was met; no run may break a rule.  words: for trace()."""

    def run():
        outcome, report = trace(label, kernel, command, **words)
        assert not outcome.status, outcome.output
        assert not report.findings, report.findings[:5]
        return report.counts

    guests.races(dict.fromkeys(kinds, 1), MOST, run)


def finds(bug, kernel, command, wanted, params=(), **words):
    """Run with `bug` planted until it is found: by a rule, and in what words, `wanted`."""

    def run():
        _, report = trace(bug, kernel, command, (guests.bug(bug), *params), **words)
        return {bug: len(stage2check.found(report, *wanted))}

    guests.races({bug: 1}, MOST, run)
