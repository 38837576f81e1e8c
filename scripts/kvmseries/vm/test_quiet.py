import pytest

from kvmseries.vm.quiet import Quiet, waited


@pytest.fixture
def threads(tmp_path):
    """Sets the ns that the threads of process 7 have waited."""

    def put(**waits):
        for thread, ns in waits.items():
            folder = tmp_path / "7" / "task" / thread.strip("t")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "schedstat").write_text(f"5 {ns} 3\n", encoding="ascii")

    put.proc = tmp_path
    return put


@pytest.fixture
def quiet(threads):
    """A Quiet of process 7 whose clock is quiet.now."""

    class Clock:
        now = 100.0

    clock = Clock()
    threads(t1=int(50e9), t2=0)
    clock.quiet = Quiet(7, threads.proc, lambda: clock.now)
    return clock


def test_time_without_a_cpu_does_not_count(quiet, threads):
    quiet.now += 10
    threads(t1=int(50e9 + 9e9), t2=int(2e9))
    assert quiet.quiet.seconds() == pytest.approx(1)
    quiet.now += 10
    threads(t2=int(6e9))
    assert quiet.quiet.seconds() == pytest.approx(7)


@pytest.mark.parametrize("passed, waited_ns, seconds", [(130, 50e9, 130), (2, 80e9, 0)])
def test_no_more_is_taken_away_than_a_thread_waited_and_than_has_passed(quiet, threads, passed, waited_ns, seconds):
    quiet.now += passed
    threads(t1=int(waited_ns))
    assert quiet.quiet.seconds() == seconds


def test_words_begin_it_anew(quiet, threads):
    quiet.now += 10
    threads(t1=int(55e9))
    quiet.quiet.heard()
    quiet.now += 3
    assert quiet.quiet.seconds() == pytest.approx(3)


def test_a_new_thread_and_one_that_has_ended(quiet, threads):
    threads(t3=int(70e9))
    (threads.proc / "7" / "task" / "1" / "schedstat").unlink()
    quiet.now += 5
    assert quiet.quiet.seconds() == 5


def test_a_kernel_that_does_not_say(tmp_path):
    assert waited(7, tmp_path) == {}
    folder = tmp_path / "7" / "task" / "7"
    folder.mkdir(parents=True)
    (folder / "schedstat").write_text("\n", encoding="ascii")
    assert waited(7, tmp_path) == {}
