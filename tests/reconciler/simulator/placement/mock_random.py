"""The generator with which Kafka's own tests and the golden vectors of KRaft's placement were made (FACTS §9.4)."""

from __future__ import annotations

from reconciler.simulator.placement.java_random import JavaRandom


class MockRandom(JavaRandom):
    """Bounds and shuffles as in Java; the bits are the highest of a state of 64 bits that begins at 17."""

    def __init__(self) -> None:
        super().__init__(0)
        self.state = 17

    def next_bits(self, bits: int) -> int:
        self.state = (self.state * 2_862_933_555_777_941_757 + 3_037_000_493) % (1 << 64)
        return self.state >> (64 - bits)
