"""CI's time-out, or a terminal that goes away, must not leave guests and compilers behind; and which check
is run again, once."""

import shutil
import signal

import pytest

from checks import remember
from kvmseries.base import paths
from kvmseries.guest import run as guest
from kvmseries.source import git

# Seen on x86_64 and not explained: "Seen, and not explained" in arch-x86-kvm-mmu/README.md.  In 200 runs of the stress
# test on base and 200 on the series (Documentation/results/hunt-v5.10-x86_64-stress.json) base ended by the first of
# these 3 times, and the series never.  One check of a session is run again; a second that fails so has failed.
UNEXPLAINED = (
    # A vCPU's triple fault, KVM_EXIT_SHUTDOWN, in the words of the stress tests.
    r"unexpected exit, (exit_reason=SHUTDOWN|reason 8\b)",
    # The same of the emulated machine itself; what its kernel has reported reads otherwise.
    "the guest ended before its job",
)


class Again:
    """What the check that runs has booted, and what was run again in this session."""

    def __init__(self):
        self.booted, self.checks = [], []

    def boots(self, machine, folder):
        """A guest is started, see guest.watchers."""
        self.booted.append((machine.arch, folder))

    def may(self):
        """Whether the check that runs may be run again, if it fails by what is not explained: it has booted
        guests, of x86_64 alone, and it would be the first."""
        return bool(self.booted) and {arch for arch, _ in self.booted} == {"x86_64"} and not self.checks

    def keep(self, report):
        """Remember that the check is run again, and keep the logs of its last guest, which the next run of it
        would remove."""
        _, folder = self.booted[-1]
        kept = paths.out("run-again", folder.name)
        paths.remove(kept)
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("initrd*"))
        (kept / "failure.txt").write_text(f"{report.nodeid}\n{report.longreprtext}\n", encoding="utf-8")
        self.checks.append((report.nodeid, kept))


AGAIN = Again()


def pytest_configure(config):
    """As __main__.py does for scripts/series; and the conditions of flaky marks find AGAIN."""

    def terminated(*_):
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminated)
    git.forget_environment()
    config.again = AGAIN
    guest.watchers.append(AGAIN.boots)


def pytest_collection_modifyitems(items):
    """A check that boots guests is run again where AGAIN says so and it fails by what is not explained."""
    for item in items:
        if item.get_closest_marker("boot"):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=list(UNEXPLAINED), condition="config.again.may()"))


def pytest_runtest_logstart():
    """A check begins, or begins again."""
    AGAIN.booted.clear()
    remember.begin()


def pytest_runtest_logreport(report):
    """Nothing that has failed goes unsaid, and what it remembers is done again when it is run again."""
    if report.outcome == "rerun":
        AGAIN.keep(report)
        remember.forget()
        print(
            f"\nRUN AGAIN, for it failed by what arch-x86-kvm-mmu/README.md does not explain: {report.nodeid}\n"
            f"{report.longreprtext}\n"
        )


def pytest_terminal_summary(terminalreporter):
    """What was run again, and where its logs are."""
    if AGAIN.checks:
        terminalreporter.section(f"run again: {len(AGAIN.checks)}, not explained (arch-x86-kvm-mmu/README.md)")
    for nodeid, kept in AGAIN.checks:
        terminalreporter.write_line(f"{nodeid}: logs of the failure in {kept}")
