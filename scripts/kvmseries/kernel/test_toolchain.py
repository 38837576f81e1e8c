"""Compilers: which are too old for a kernel."""

import pytest

from kvmseries.base.errors import Fail
from kvmseries.kernel import toolchain


@pytest.mark.parametrize(
    "gcc, kernel",
    [
        ("12.2.0", "5.10.262"),
        ("4.9.4", "5.10.262"),
        ("12", "7.3.4"),
        ("8.1.0", "6.16.0"),
        ("5.1.0", "6.1.5"),
        ("some words", "5.10.262"),
    ],
)
def test_a_compiler_that_will_do(program, gcc, kernel):
    program(f"{toolchain.prefix('arm64')}gcc", f"echo '{gcc}'\n")
    toolchain.check("arm64", kernel)


@pytest.mark.parametrize(
    "gcc, kernel, oldest", [("4.8.5", "5.10.262", "4.9"), ("7.5.0", "7.3.4", "8.1"), ("4.9.4", "6.1.5", "5.1")]
)
def test_a_compiler_that_is_too_old(program, gcc, kernel, oldest):
    name = f"{toolchain.prefix('arm64')}gcc"
    program(name, f"echo '{gcc}'\n")
    with pytest.raises(
        Fail, match=f"^linux {kernel} needs gcc {oldest} or newer, and {name} is {gcc}: install a newer one"
    ):
        toolchain.check("arm64", kernel)
