"""Which series the user's own tree is the base of."""

from types import SimpleNamespace

from tests import extra


def test_the_user_s_tree_is_the_base_of_v5_10_alone(monkeypatch):
    monkeypatch.setenv("TREE", "/home/me/linux")
    names = ("v5.10", "v7.3", "qemu-10.0")
    assert [extra.own_base(SimpleNamespace(name=name)) for name in names] == ["/home/me/linux", None, None]
    monkeypatch.setenv("TREE", "")
    assert extra.own_base(SimpleNamespace(name="v5.10")) is None
