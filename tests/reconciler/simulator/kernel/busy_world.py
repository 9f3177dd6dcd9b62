"""A world in which everything in the kernel happens: machines that talk, crash and start again."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from reconciler.simulator.kernel import (
    Answer,
    Fault,
    FaultRates,
    MetadataRequest,
    MetadataResponse,
    Request,
    Response,
    World,
)

NAMES = ("broker-1", "broker-2", "broker-3")


class Talker:
    """Greets every other one four times a second, and answers greetings, half of them later."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.running, self.starts = world, name, False, 0
        self.answers: list[Response | None] = []
        self.asked = 0
        world.add_target(self)

    def start(self) -> None:
        self.running, self.starts = True, self.starts + 1
        self.timers = self.world.timers(self.name)
        self.world.network.serve(self.name, self.serve)
        self.world.history.say(self.name, f"starts at {self.timers.now_ms()}")
        self.greet()

    def greet(self) -> None:
        for other in NAMES:
            self.asked += 1
            self.world.network.call(self.name, other, MetadataRequest((self.name,)), self.hear)
        self.timers.after(250, "greet", self.greet)

    def hear(self, response: Response | None) -> None:
        self.answers.append(response)

    def serve(self, sender: str, request: Request, answer: Answer) -> None:
        made = MetadataResponse((), (), self.starts)
        if self.timers.now_ms() % 2:
            self.timers.after(7, "answer", lambda: answer(made))
        else:
            answer(made)

    def crash(self) -> None:
        self.running = False

    def faults(self) -> Mapping[str, Fault]:
        if self.running:
            return {"session": lambda random: f"expires {random.random()}"}
        return {"restart": self._restart}

    def _restart(self, random: object) -> str:
        self.start()
        return "starts again"


def busy(seed: int, rates: FaultRates, steps: int) -> tuple[World, list[Talker]]:
    world = World(seed, rates)
    talkers = [Talker(world, name) for name in NAMES]
    for talker in talkers:
        world.guarded(talker.start)
    world.run(steps)
    return world, talkers


if __name__ == "__main__":
    ran, _ = busy(int(sys.argv[1]), FaultRates.default(), 3000)
    sys.stdout.write(f"{ran.history.digest} {ran.history.trace_digest} {len(ran.history.lines)}")
