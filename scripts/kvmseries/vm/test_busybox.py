"""Where the guest's busybox is from: Debian, the user, or a line that says where to put one."""

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, write
from kvmseries.vm import busybox


def test_debians_is_fetched_where_there_is_a_mirror(program, monkeypatch, tmp_path):
    monkeypatch.setattr(debian, "fetch_native", lambda package, arch: tmp_path / f"{package}_{arch}.deb")
    program("dpkg-deb", 'mkdir -p "$3/usr/bin"; echo "$2" > "$3/usr/bin/busybox"\n')
    assert busybox.path("arm64").read_text(encoding="utf-8") == f"{tmp_path}/busybox-static_arm64.deb\n"


def test_elsewhere_the_user_puts_one_there(only_tools):
    line = r"has no mirror of Debian, .*: put a static one for aarch64 at .*/busybox-arm64, or run it in a container"
    with pytest.raises(Fail, match=line):
        busybox.path("arm64")
    assert not [name for name in below(paths.cache_root()) if name.startswith(("busybox", ".busybox"))]
    write(paths.cache("busybox-arm64"), "mine")
    assert busybox.path("arm64").read_text(encoding="utf-8") == "mine"
