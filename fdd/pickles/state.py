# SPDX-License-Identifier: Apache-2.0
"""The state of one run: stack, memo, log and what is counted. The loop of machine.py and the handlers share it."""

from __future__ import annotations

from collections.abc import Iterable

from fdd.limits import Limits
from fdd.pickles import faults
from fdd.pickles.arguments import Data, argument_end
from fdd.pickles.faults import FatalFault, LimitReached
from fdd.pickles.nodes import MISSING, Call, DictNode, ListNode, PickleEvent, PickleFault, SetNode, Value
from fdd.pickles.opcodes import BY_CODE, OPCODES, opcode_name
from fdd.pickles.walk import CONTAINERS, children

MUTABLE = frozenset((Call, ListNode, SetNode, DictNode))
"""Kinds that can take further values after they were put somewhere."""

SHALLOW = 8
"""Nesting up to which depths are not stored but found again when asked for, which hardly ever happens."""

_CHECK_INTERVAL = 4096
"""Opcodes that may always run between two looks at the limits."""


class Frame:
    """A FRAME: where its opcode lies and where it says it ends."""

    __slots__ = ("offset", "body", "end", "reported")

    def __init__(self, offset: int, body: int, end: int) -> None:
        self.offset = offset
        self.body = body
        self.end = end
        self.reported = False


class State:
    """Everything a run changes. ``data`` is what it may read (``size`` bytes), ``total`` where the bytes really end.

    The stack is a list of the items above the last MARK; ``below`` keeps what lay under each MARK, so that popping
    across one is an ordinary underflow. ``high`` is the deepest nesting among the items above the last MARK.
    """

    def __init__(self, data: Data, start: int, total: int, limits: Limits, probing: bool = False) -> None:
        self.data = data
        self.start = start
        self.size = len(data)
        self.total = total
        self.limits = limits
        self.probing = probing
        self.position = start
        self.stack: list[Value] = []
        self.below: list[tuple[list[Value], int]] = []
        self.high = 0
        # A list while the indexes come in order, as every pickler writes them (measured: a third less time),
        # and a dict for good after the first that does not: never grown by index.
        self.memo: list[Value] | dict[int, Value] = []
        self.memo_highest = -1
        self.memo_highest_offset = 0
        self.counts: list[int | None] = [None] * 256
        self.firsts: list[int] = [0] * 256
        self.stopped = False
        self.root: Value = MISSING
        self.stack_left = 0
        self.protocols: list[tuple[int, int]] = []
        self.faults: list[PickleFault] = []
        self.events: list[PickleEvent] = []
        self.undecodable: list[tuple[int, int]] = []
        self.frame: Frame | None = None
        # Depths by id: of all containers deeper than SHALLOW, of those that grew and of those asked for. Ids stay valid
        # because no container dies during a run: what leaves the stack for nowhere is kept in `dropped`.
        self.depths: dict[int, int] = {}
        self.dropped: list[Value] = []
        self.deepest = 0
        self.deepest_offset = start
        self.shared: set[int] = set()
        """Ids of mutable containers that were on the stack more than once, so may already be part of another."""
        self.depths_stale = False
        """A shared container grew, so the depths of what holds it are too small and :func:`walk.nesting` decides."""

    # Faults and events

    def fault(self, code: str, offset: int, detail: str, fatal: bool = False) -> None:
        """Note a fault of the opcode at ``offset``."""
        opcode = self.data[offset] if offset < self.size else None
        name = "" if opcode is None else opcode_name(opcode)
        self.faults.append(PickleFault(code, offset, self.extent(offset), name, detail, fatal))

    def extent(self, offset: int) -> int:
        """Bytes of the opcode at ``offset`` with its argument, as far as they are there."""
        if offset >= self.size:
            return 0
        opcode = BY_CODE[self.data[offset]]
        if opcode is None:
            return 1
        try:
            return argument_end(opcode, self.data, offset + 1, self.size) - offset
        except FatalFault:
            return self.size - offset

    def event(self, what: str, offset: int, value: Value) -> None:
        """Log something that loading would do."""
        self.events.append(PickleEvent(what, offset, value))

    # Counters and limits

    def node_count(self) -> int:
        """Values created so far."""
        counts = self.counts
        return sum((counts[opcode.code] or 0) * opcode.creates for opcode in OPCODES)

    def stack_size(self) -> int:
        """Items on the stack, marks included."""
        return len(self.stack) + sum(len(items) + 1 for items, _ in self.below)

    def budget(self) -> int:
        """Opcodes that may run until the next call; :class:`LimitReached` where a limit is passed.

        A single opcode makes one value or stack item (INST two), so limits are passed by 4,096 at most, by a quarter
        where that is less or where there are very many marks. The loop itself counts nothing but opcodes.
        """
        limits = self.limits
        # Lists that grow without a new value are held to the same limit, for the sake of memory.
        nodes = max(
            self.node_count(),
            len(self.memo),
            len(self.events) + len(self.faults) + len(self.protocols) + len(self.undecodable) + len(self.dropped),
        )
        if nodes > limits.pickle_nodes:
            raise LimitReached("pickle_nodes")
        items = self.stack_size()
        if items > limits.pickle_stack:
            raise LimitReached("pickle_stack")
        node_slack = min(_CHECK_INTERVAL, limits.pickle_nodes // 4)
        stack_slack = min(max(_CHECK_INTERVAL, len(self.below) // 4), limits.pickle_stack // 4)
        until_nodes = max((limits.pickle_nodes - nodes) // 2, node_slack)
        until_stack = max(limits.pickle_stack - items, stack_slack)
        return max(1, min(until_nodes, until_stack))

    # Nesting

    def depth(self, value: Value) -> int:
        """Nesting of containers in ``value``: 0 for an atom, 1 for a container of atoms.

        Recursion ends after SHALLOW levels: everything deeper is stored, and everything that can close a circle too.
        """
        if type(value) not in CONTAINERS:
            return 0
        depth = self.depths.get(id(value))
        if depth is None:
            depth = 1 + max(map(self.depth, children(value)), default=0)
            self.depths[id(value)] = depth
        return depth

    def deepen(self, depth: int, offset: int) -> int:
        """Note that nesting ``depth`` was reached; returns the deepest so far."""
        if depth > self.deepest:
            self.deepest = depth
            self.deepest_offset = offset
            if depth > self.limits.pickle_nesting:
                raise LimitReached("pickle_nesting")
        return self.deepest

    def placed(self, value: Value, depth: int, offset: int) -> None:
        """Note the ``depth`` of a container that is now on top of the stack."""
        if depth > SHALLOW:
            self.depths[id(value)] = depth
        if depth > self.high:
            self.high = depth
            self.deepen(depth, offset)

    def push(self, value: Value, depth: int, offset: int) -> None:
        """Push a new container."""
        self.stack.append(value)
        self.placed(value, depth, offset)

    def grow(self, target: Value, depth: int, offset: int) -> None:
        """Note, before it does, that ``target`` on top of the stack takes values of nesting ``depth``."""
        if self.shared and id(target) in self.shared:
            self.depths_stale = True
        depth = max(depth + 1, self.depth(target))
        self.depths[id(target)] = depth
        self.placed(target, depth, offset)

    def push_again(self, value: Value, offset: int) -> None:
        """Push a value that exists already (memo, DUP)."""
        kind = type(value)
        if kind in CONTAINERS:
            if kind in MUTABLE:
                self.shared.add(id(value))
            self.high = max(self.high, self.depth(value))
        self.stack.append(value)

    def drop(self, value: Value) -> None:
        """Keep a container alive that leaves the stack for nowhere."""
        if type(value) in CONTAINERS:
            self.dropped.append(value)

    # The stack

    def mark(self) -> None:
        """Push a MARK."""
        self.below.append((self.stack, self.high))
        self.stack = []
        self.high = 0

    def pop_mark(self) -> tuple[list[Value], int]:
        """Items above the last MARK and their nesting; the items below it become the stack."""
        items, high = self.stack, self.high
        if not self.below:
            raise FatalFault(faults.NO_MARK, "no MARK on the stack")
        self.stack, self.high = self.below.pop()
        return items, high

    def need(self, count: int) -> None:
        """Make sure that ``count`` items lie above the last MARK."""
        if len(self.stack) < count:
            raise self.underflow(count)

    def underflow(self, count: int) -> FatalFault:
        """The fault of an opcode that needs ``count`` items and does not have them."""
        if self.below:
            return FatalFault(faults.POP_ACROSS_MARK, f"the opcode needs {count} above the last MARK")
        return FatalFault(faults.STACK_UNDERFLOW, f"the opcode needs {count} on the stack")

    # The memo

    def memorise(self, index: int, offset: int) -> None:
        """Write the top of the stack to the memo."""
        if not self.stack:
            what = "a MARK is on top of the stack" if self.below else "the stack is empty"
            raise FatalFault(faults.MEMO_NOTHING_TO_PUT, what)
        value = self.stack[-1]
        memo = self.memo
        if isinstance(memo, list):
            if index == len(memo):
                memo.append(value)
                self.memo_highest = index
                self.memo_highest_offset = offset
                return
            if index > len(memo):
                self.memo = memo = dict(enumerate(memo))
        if index in (range(len(memo)) if isinstance(memo, list) else memo) and memo[index] is not value:
            self.drop(memo[index])
            self.event("memo-overwrite", offset, value)
        memo[index] = value
        if isinstance(memo, dict) and index > self.memo_highest:
            self.memo_highest = index
            self.memo_highest_offset = offset

    def note_highest(self, offset: int) -> None:
        """Take over that the list of the memo was last extended by the opcode at ``offset``."""
        if isinstance(self.memo, list) and self.memo and offset > self.memo_highest_offset:
            self.memo_highest = len(self.memo) - 1
            self.memo_highest_offset = offset

    def recall(self, index: int, offset: int) -> None:
        """Push what the memo holds."""
        memo = self.memo
        if index not in (range(len(memo)) if isinstance(memo, list) else memo):
            raise FatalFault(faults.MEMO_UNWRITTEN, f"memo entry {index} was not written before")
        self.push_again(memo[index], offset)

    def memo_values(self) -> Iterable[Value]:
        """What the memo holds."""
        return self.memo if isinstance(self.memo, list) else self.memo.values()

    # Frames

    def open_frame(self, frame: Frame) -> None:
        """Begin a FRAME."""
        if self.frame is not None and self.frame.end > frame.offset:
            self.fault(faults.FRAME_NESTED, frame.offset, f"the frame at {self.frame.offset} runs to {self.frame.end}")
            self.frame = None
        self.close_frame(frame.offset)
        if frame.end > self.total:
            frame.reported = True
            self.fault(faults.FRAME_PAST_END, frame.offset, f"the frame ends at {frame.end}, the data at {self.total}")
        self.frame = frame

    def close_frame(self, position: int) -> None:
        """Check that the last frame ended between two opcodes; ``position`` is a boundary at or behind its end.

        The loop does not look at frames: the boundaries of one are found again here, unless it ends at ``position``.
        """
        frame = self.frame
        self.frame = None
        if frame is None or frame.reported or frame.end == position:
            return
        if frame.end > position:
            if self.stopped:
                self.fault(faults.FRAME_PAST_END, frame.offset, f"the frame ends at {frame.end}, the pickle at {position}")
            return
        boundary = before = frame.body
        while boundary < frame.end:
            before = boundary
            opcode = BY_CODE[self.data[boundary]]
            if opcode is None:  # the run ended here
                return
            try:
                boundary = argument_end(opcode, self.data, boundary + 1, self.size)
            except FatalFault:
                return
        if boundary != frame.end:
            self.fault(faults.FRAME_INSIDE_OPCODE, before, f"the frame at {frame.offset} ends at {frame.end}")
