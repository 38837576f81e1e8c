"""What the checks of traces of stage 2 share: tools-testing-selftests-kvm/stage2_trace."""

from kvmseries.base import paths
from kvmseries.vm import machine
from stage2_trace import stage2check
from tests.lab import races

# Runs of one kind at most: on a host that is loaded by others little happens in one.
MOST = 4


def trace(lab, label, command):
    """(Ran, stage2check.Report) of a command and its trace."""
    lab = lab.but(params=(machine.SWAP, *lab.params), machine={**lab.machine, "trace": True})
    ran = lab.run(command, 300, f"stage2-trace-{label}")
    assert not ran.splats
    file = ran.folder / "trace"
    with open(file, encoding="ascii") as lines:
        report = stage2check.check(lines)
    # Some MB each; what is found quotes the numbers of its lines.
    paths.remove(file)
    return ran, report


def keeps_the_rules(lab, label, command, kinds):
    """Run until each of the kinds of debts was met; no run may break a rule."""

    def run():
        ran, report = trace(lab, label, command)
        ran.good()
        assert not report.findings, report.findings[:5]
        return report.counts

    races(dict.fromkeys(kinds, 1), MOST, run)


def finds(lab, command, wanted):
    """Run until the mutant of `lab` is found: by a rule, and in what words, `wanted`."""

    def run():
        _, report = trace(lab, lab.mutant, command)
        return {lab.mutant: len(stage2check.found(report, *wanted))}

    races({lab.mutant: 1}, MOST, run)
