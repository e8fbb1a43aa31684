"""The control page byte by byte: `page.h` in ctypes, and rules as it has them."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_uint8, c_uint32, c_uint64

from chaos.interposer.rules import Delay, Error, Reset, Rule, Sticky, Trap

MAGIC, VERSION, SIZE = int.from_bytes(b"MPCHAOS1", "little"), 1, 8192
RULES, PROCESSES = 8, 64
OWNER, OWNER_DIED = 0x3FFFFFFF, 0x40000000  # FUTEX_TID_MASK, FUTEX_OWNER_DIED of linux/futex.h
ACTIONS = {Error: 1, Sticky: 2, Delay: 3, Reset: 4, Trap: 5}


class RuleArea(ctypes.Structure):
    """One rule and its counters."""

    symbols: int
    action: int
    code: int
    delay: int
    nth: int
    times: int
    over: int
    threshold: int
    seed: int
    rank: int
    pid: int
    calls: int
    hits: int
    first: int
    last: int
    _fields_ = (
        ("symbols", c_uint64),
        ("action", c_uint32),
        ("code", c_int32),
        ("delay", c_uint64),
        ("nth", c_uint64),
        ("times", c_uint64),
        ("over", c_uint64),
        ("threshold", c_uint64),
        ("seed", c_uint64),
        ("rank", c_int32),
        ("pid", c_int32),
        ("spare", c_uint8 * 56),
        ("calls", c_uint64),
        ("hits", c_uint64),
        ("first", c_uint64),
        ("last", c_uint64),
        ("rest", c_uint8 * 32),
    )

    def write(self, rule: Rule) -> None:
        """Replaces the rule; its counters begin at 0."""
        action = rule.action
        ctypes.memset(ctypes.addressof(self), 0, ctypes.sizeof(self))
        self.symbols, self.action = rule.mask, ACTIONS[type(action)]
        self.code = action.code if isinstance(action, Error | Sticky) else 0
        self.delay = round(action.seconds * 1e9) if isinstance(action, Delay) else 0
        self.nth, self.times, self.over = rule.nth, rule.times, rule.size_over
        self.threshold, self.seed = round(rule.probability * 2**32), rule.seed
        self.rank = -1 if rule.rank is None else rule.rank
        self.pid = rule.pid or 0


class ProcessArea(ctypes.Structure):
    """One process of the target."""

    pid: int
    rank: int
    stamp: int
    entered: int
    left: int
    hits: int
    sticky: int
    result: int
    _fields_ = (
        ("pid", c_int32),
        ("rank", c_int32),
        ("stamp", c_uint64),
        ("entered", c_uint64),
        ("left", c_uint64),
        ("hits", c_uint64),
        ("sticky", c_int32),
        ("result", c_int32),
        ("rest", c_uint8 * 16),
    )


class Layout(ctypes.Structure):
    """All of it."""

    magic: int
    version: int
    size: int
    lock: int
    armed: int
    generation: int
    lease: int
    rules: int
    overflow: int
    rule: ctypes.Array[RuleArea]
    process: ctypes.Array[ProcessArea]
    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("size", c_uint32),
        ("spare", c_uint8 * 48),
        ("lock", c_uint32),
        ("mutex", c_uint8 * 60),
        ("armed", c_uint64),
        ("generation", c_uint64),
        ("lease", c_uint64),
        ("rules", c_uint32),
        ("gap", c_uint8 * 36),
        ("overflow", c_uint64),
        ("rest", c_uint8 * 56),
        ("rule", RuleArea * RULES),
        ("pad", c_uint8 * 256),
        ("process", ProcessArea * PROCESSES),
        ("tail", c_uint8 * 2048),
    )
