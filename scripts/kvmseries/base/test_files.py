"""Files that are there whole or not at all, and stamps."""

import json

import pytest

from kvmseries.base import files, stamp
from kvmseries.base.errors import Fail
from kvmseries.conftest import below


def test_a_file_is_written_with_its_folder(tmp_path):
    assert files.write(tmp_path / "a/b", "ü") == tmp_path / "a/b"
    assert (tmp_path / "a/b").read_bytes() == "ü".encode()
    files.write(tmp_path / "a/b", b"\x00")
    assert (tmp_path / "a/b").read_bytes() == b"\x00" and below(tmp_path / "a") == ["b"]


def test_what_fails_leaves_the_old_file_and_no_other(tmp_path):
    (tmp_path / "folder").mkdir()
    files.write(tmp_path / "folder/x", "old")
    with pytest.raises(ZeroDivisionError), files.whole(tmp_path / "folder/x") as part:
        part.write_text("new")
        raise ZeroDivisionError
    with pytest.raises(Fail, match="folder: Is a directory$"):
        files.write(tmp_path / "folder", "x")
    with pytest.raises(Fail, match="cannot write .*is not a directory"):
        files.write(tmp_path / "folder/x/y", "x")
    assert (tmp_path / "folder/x").read_text() == "old" and below(tmp_path / "folder") == ["x"]


def test_a_full_disk_is_one_line_and_leaves_the_old_file(small_disk):
    files.write(small_disk / "x", "old")
    with pytest.raises(Fail, match="^disk full: "):
        files.write(small_disk / "x", b"x" * (2 << 20))
    assert (small_disk / "x").read_text() == "old" and below(small_disk) == ["x"]


def test_json_has_a_line_for_each_row():
    data = {"schema": 1, "rows": [{"a": 1}, {"a": [2]}], "x": {"y": 2}}
    text = files.lines(data, "rows")
    assert json.loads(text) == data
    assert '  {"a": 1},\n  {"a": [2]}\n' in text
    more = {**data, "traces": [[1], [2]]}
    assert json.loads(files.lines(more, "traces", "rows")) == more
    assert files.lines(data, "traces", "rows") == text


def test_a_stamp_is_of_what_was_asked_for(tmp_path):
    path = tmp_path / "made.json"
    assert stamp.current(path, {"commit": "1"}) is None
    assert stamp.write(path, {"commit": "1"}, release="5.10") == {"commit": "1", "release": "5.10"}
    assert stamp.current(path, {"commit": "1"}) == {"commit": "1", "release": "5.10"}
    assert stamp.current(path, {"commit": "2"}) is None and stamp.current(path, {"commit": "1", "x": 1}) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3"])
def test_a_stamp_that_is_none_is_as_if_it_were_not_there(tmp_path, text):
    (tmp_path / "made.json").write_text(text)
    assert stamp.current(tmp_path / "made.json", {"commit": "1"}) is None and stamp.read(tmp_path / "made.json") == {}
