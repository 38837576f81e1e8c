"""CI's time-out, or a terminal that goes away, must not leave guests and compilers behind; and what is
run again once."""

import signal

import pytest

from kvmseries import git

# Seen on base as well, or once in hundreds of runs, and not explained: "Seen, and not explained" in
# arch-x86-kvm-mmu/README.md. Hours of make soak are for what is rare; here it is said, and run again.
UNEXPLAINED = (
    # A vCPU's triple fault, KVM_EXIT_SHUTDOWN, in the words of the stress tests.
    r"unexpected exit, (exit_reason=SHUTDOWN|reason 8\b)",
    # The same of the emulated machine itself; what its kernel has reported reads otherwise.
    "the guest ended before its job",
)


def pytest_configure():
    """As __main__.py does for scripts/series."""
    def terminated(*_):
        raise KeyboardInterrupt
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminated)
    git.forget_environment()


def pytest_collection_modifyitems(items):
    """A check that boots guests is run again where it fails by what is not explained."""
    for item in items:
        if item.get_closest_marker("boot"):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=list(UNEXPLAINED)))


def pytest_runtest_logreport(report):
    """Nothing that has failed goes unsaid."""
    if report.outcome == "rerun":
        print(f"\nRUN AGAIN, for it failed by what arch-x86-kvm-mmu/README.md does not explain: {report.nodeid}\n"
              f"{report.longreprtext}\n")
