"""Lists of numbers: one rule for kernels' and QEMU's benchmarks, which had two."""

import pytest

from kvmseries.base import numbers
from kvmseries.base.errors import Usage


def test_lists_of_numbers():
    assert numbers.vcpus("1,2,4") == (1, 2, 4) and numbers.vcpus("64") == (64,)
    assert numbers.numbers("--rings", "0,1024", 0, 65536) == (0, 1024)
    with pytest.raises(Usage, match="--rings 65537: from 0 to 65536"):
        numbers.numbers("--rings", "1024,65537", 0, 65536)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("0", "--vcpus 0: a guest has 1 to 64 vCPUs"),
        ("1,0,2", "--vcpus 0: "),
        ("65", "1 to 64"),
        ("1,2,1", "names a number twice"),
        ("1,01", "names a number twice"),
        ("two", "--vcpus 'two' is not a list of numbers such as 1,2,4"),
        # Also what Python takes for a number and a user does not mean.
        *((text, "not a list") for text in ("", "-1", "1,", "1 2", "1.5", " 1", "1_0", "1, 2", "+1", "\u00b2")),
    ],
)
def test_what_is_none(text, reason):
    with pytest.raises(Usage, match=reason):
        numbers.vcpus(text)
