import pytest

from kvmseries.base import numbers
from kvmseries.base.errors import Usage


def test_vcpu_counts_are_read():
    assert numbers.vcpus("1,2,4") == (1, 2, 4)
    assert numbers.vcpus("64") == (64,)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("0", "--vcpus 0: a guest has 1 to 64 vCPUs"),
        ("1,0,2", "--vcpus 0: "),
        ("65", "1 to 64"),
        ("two", "--vcpus 'two' is not a list of numbers such as 1,2,4"),
        ("", "not a list"),
        ("-1", "not a list"),
        ("1,", "not a list"),
        ("1 2", "not a list"),
        ("1.5", "not a list"),
        ("1,2,1", "names a number twice"),
        ("1,01", "names a number twice"),
    ],
)
def test_vcpu_counts_that_are_none(text, reason):
    with pytest.raises(Usage, match=reason):
        numbers.vcpus(text)


def test_numbers_of_another_option():
    assert numbers.numbers("--rings", "0,1024", 0, 65536) == (0, 1024)
    with pytest.raises(Usage, match="--rings 65537: from 0 to 65536"):
        numbers.numbers("--rings", "1024,65537", 0, 65536)


@pytest.mark.parametrize("text", [" 1", "1_0", "1, 2", "+1", "\u00b2"])
def test_what_python_takes_for_a_number_and_a_user_does_not_mean(text):
    """One rule for kernels' and QEMU's benchmarks, which had two."""
    with pytest.raises(Usage, match="is not a list of numbers"):
        numbers.numbers("--working-set", text, 1, 64)
