"""Columns: packed records of the store as numpy arrays, ids matched against ids, and ids written for a statement. Pure.

An id is 16 bytes (`S16`). Where a value is unknown, an array of floats has NaN and an array of places has -1.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.bytes_]
Floats = NDArray[np.float64]
Places = NDArray[np.intp]
"""Positions in another array."""
Flags = NDArray[np.bool_]
Records = NDArray[np.void]

ID_BYTES = 16
NO_IDS: Ids = np.empty(0, dtype="S16")


def unpack(packed: bytes, layout: Sequence[tuple[str, str]]) -> Records:
    """Return packed records as an array with one named field a column."""
    return np.frombuffer(packed, dtype=list(layout))


def ids_of(records: Records, name: str = "owner_id") -> Ids:
    """Return a column of ids."""
    return np.ascontiguousarray(records[name])


def floats_of(records: Records, name: str) -> Floats:
    """Return a column as floats."""
    return records[name].astype(np.float64)


def id_array(ids: Ids) -> str:
    """Write ids as a Postgres array literal."""
    written, width = ids.tobytes().hex(), 2 * ID_BYTES
    return "{" + ",".join(written[start : start + width] for start in range(0, len(written), width)) + "}"


def uuid_at(ids: Ids, index: int) -> UUID:
    """Return one id."""
    return uuid_of(ids[index])


def uuid_of(raw: bytes) -> UUID:
    """Return the id that an element of a column is."""
    return UUID(bytes=bytes(raw).ljust(ID_BYTES, b"\0"))  # numpy drops what looks like padding


def uuids_of(ids: Ids) -> list[UUID]:
    """Return a column of ids one by one."""
    written = ids.tobytes()
    return [UUID(bytes=written[start : start + ID_BYTES]) for start in range(0, len(written), ID_BYTES)]


def find(known: Ids, asked: Ids) -> Places:
    """Return where each asked id is among the known ones, -1 for those that are not."""
    return _find(known, asked)


def find_places(known: tuple[Places, Places], asked: tuple[Places, Places]) -> Places:
    """Return where each asked (conversation, seq) is among the known ones, -1 for those that are not."""
    return _find(_place_key(*known), _place_key(*asked))


def best_of(values: Floats, groups: Places, *, count: int) -> Floats:
    """Return the highest known value of each group 0..count-1, NaN for a group without one; group -1 is left out."""
    best = np.full(count, -np.inf)
    is_known = ~np.isnan(values) & (groups >= 0)
    np.maximum.at(best, groups[is_known], values[is_known])
    best[np.isneginf(best)] = np.nan
    return best


def take(values: Floats, places: Places) -> Floats:
    """Return the value at each place, NaN where the place is -1."""
    taken = np.full(len(places), np.nan)
    is_known = places >= 0
    taken[is_known] = values[places[is_known]]
    return taken


def _place_key(conversations: Places, seqs: Places) -> Places:
    return (conversations << 40) + seqs


def _find(known: NDArray[Any], asked: NDArray[Any]) -> Places:
    if not len(known) or not len(asked):
        return np.full(len(asked), -1, dtype=np.intp)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)
    found: Places = order[at]
    return np.where(known[found] == asked, found, -1)
