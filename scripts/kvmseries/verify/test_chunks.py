"""Cutting out what arch-arm64-kvm/chunks compiles."""

import pytest

from kvmseries.base.errors import Fail
from kvmseries.verify import chunks


def test_what_is_not_there_is_one_line(tmp_path):
    with pytest.raises(Fail, match=f"has no {chunks.HEADER}: it takes a tree made by scripts/series apply"):
        chunks.collect(tmp_path)
    for name in (chunks.HEADER, chunks.SOURCE):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("struct kvm_pgtable {\n\tint x;\n};\n", encoding="utf-8")
    with pytest.raises(
        Fail, match="kvm_pgtable.h: enum kvm_pgtable_walk_flags is not there, which arch-arm64-kvm/chunks"
    ):
        chunks.collect(tmp_path)
