"""The functional selftests on other CPUs and with other MMUs: nVHE, and x86-64 in the other ways in which it maps memory.
Base runs there in make soak, which has 64K and debug kernels, too."""

import pytest

from tests import functional
from tests.lab import MMUS

pytestmark = [pytest.mark.boot, pytest.mark.slow]


def test_selftests_pass_on_another_cpu():
    functional.another("v5.10", "arm64", "cortex-a72")


@pytest.mark.parametrize("mmu", ("tdp_mmu", "shadow"))
def test_all_selftests_pass_with_another_mmu(mmu):
    functional.another("v5.10", "x86_64", params=MMUS[mmu])
