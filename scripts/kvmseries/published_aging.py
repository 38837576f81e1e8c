"""Published figures of aging while vCPUs fault memory in, to draw ours beside.

tools-testing-selftests-kvm/published-aging.yaml has them and says what each key means.
"""

from dataclasses import dataclass, fields

from . import paths, published
from .errors import Fail

FILE = paths.TESTS / "published-aging.yaml"


@dataclass(frozen=True)
class Entry:
    """One published table; every field but `id` is a key of the file.  Times: vCPUs -> seconds."""

    id: str
    seed: int
    message: str
    what: str
    machine: str
    workload: str
    locked: dict           # an aging pass
    lockless: dict         # has the vCPUs of locked
    vcpu_none: dict        # wall time of the vCPUs; {} if not published
    vcpu_locked: dict
    vcpu_lockless: dict

    @property
    def passes(self):
        """vCPUs -> time of a lockless pass by that of a locked one."""
        return _quotient(self.lockless, self.locked)

    @property
    def slowdown(self):
        """{"locked": ..., "lockless": ...}: vCPUs -> vCPU time with such aging by that without; {}
        where either was not published."""
        return {"locked": _quotient(self.vcpu_locked, self.vcpu_none),
                "lockless": _quotient(self.vcpu_lockless, self.vcpu_none)}


def _quotient(above, below):
    return {vcpus: above[vcpus] / below[vcpus] for vcpus in sorted(above) if vcpus in below}


KINDS = {field.name: field.type for field in fields(Entry) if field.name != "id"}


def load(path=FILE):
    """The Entries of the file `path`, in its order.  Raises Fail with one line."""
    return tuple(_entry(where, name, entry) for where, name, entry in published.entries(path, KINDS))


def _entry(where, name, entry):
    for key, kind in KINDS.items():
        if kind is dict:
            published.check_times(where, key, entry[key])
    if not entry["locked"] or set(entry["locked"]) != set(entry["lockless"]):
        raise Fail(f"{where}: 'locked' and 'lockless' are not of the same vCPUs")
    return Entry(str(name), **entry)
