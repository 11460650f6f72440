"""Builds a double-array trie over bytes that is used in place, without unpacking.

The units are those of darts-clone (https://github.com/s-yata/darts-clone), the form in which
SentencePiece models carry their normalisation table, so that one reader serves both. Unit, 32 bits:
label of the node (bits 0-7), bit 8 set if a key ends here, bit 9 set if the offset is shifted left
by 8, offset (bits 10-30). The child by byte c of the node at i lies at i ^ offset ^ c, if its label
is c. A key's value is the unit at i ^ offset with bit 31 set.
"""

import numpy as np

HAS_VALUE = 1 << 8
IS_VALUE = 1 << 31
MAX_OFFSET = 1 << 21
WINDOW = 4096  # places before the end that are still looked at; older gaps are seldom of use


def build(keys):
    """Returns the units (uint32) of the trie of keys, a dict of non-empty bytes without NUL -> value.

    Nodes are placed breadth first, so that the upper levels, which every walk touches, lie close
    together.
    """
    return _Builder(keys).units()


class _Builder:
    def __init__(self, keys):
        self.keys = sorted(keys.items())
        self.unit = [0] * 256
        self.taken = bytearray(256)  # places in use
        self.based = bytearray(256)  # bases in use: two nodes with one base would share children
        self.taken[0] = 1

    def units(self):
        level = [(0, 0, len(self.keys), 0)]  # place, keys [from, to), depth
        while level:
            level = [child for node in level for child in self._place(*node)]
        while len(self.unit) % 256:  # a walk may look at any place of a block
            self.unit.append(0)
        return np.array(self.unit, np.uint32)

    def _place(self, place, begin, end, depth):
        """Places the children of one node; returns them as nodes to go on with."""
        value, children = None, []
        if len(self.keys[begin][0]) == depth:
            value = self.keys[begin][1]
            begin += 1
        at = begin
        while at < end:
            label, stop = self.keys[at][0][depth], at + 1
            while stop < end and self.keys[stop][0][depth] == label:
                stop += 1
            children.append((label, at, stop))
            at = stop
        labels = ([0] if value is not None else []) + [label for label, _, _ in children]
        base = self._base(labels)
        self.based[base] = 1
        offset = base ^ place
        if offset >= MAX_OFFSET:
            raise ValueError("trie too big for offsets of 21 bits")
        self.unit[place] |= offset << 10 | (HAS_VALUE if value is not None else 0)
        for label in labels:
            self.taken[base ^ label] = 1
        if value is not None:
            self.unit[base] = IS_VALUE | value
        for label, _, _ in children:
            self.unit[base ^ label] |= label
        return [(base ^ label, a, b, depth + 1) for label, a, b in children]

    def _base(self, labels):
        """Returns an unused base whose places for labels are all free, near the end."""
        place = max(1, len(self.taken) - WINDOW)
        while True:
            place = self.taken.find(0, place)
            if place < 0 or place + 256 > len(self.taken):
                place = len(self.taken) if place < 0 else place
                self.unit.extend([0] * 256)
                self.taken.extend(bytes(256))
                self.based.extend(bytes(256))
                continue
            base = place ^ labels[0]
            if not self.based[base] and not any(self.taken[base ^ label] for label in labels):
                return base
            place += 1
