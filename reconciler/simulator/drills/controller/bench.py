"""A bench for a controller: a ZooKeeper, a network, scripted brokers, and two controllers.

The controllers are beside brokers that are not registered: each broker less is a request less for all that happens.
Every message takes a few ms and arrives, unless its receiver is silent or down. What is true is read from ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.controller import Controller, ControllerSettings
from reconciler.simulator.drills.controller.broker import Held, ScriptedBroker
from reconciler.simulator.kernel import AlterIsrRequest, Response, World
from reconciler.simulator.kernel import AlterIsrResponse as IsrAnswer
from reconciler.simulator.zookeeper import (
    CONTROLLER,
    Session,
    ZooKeeper,
    broker_path,
    delete_path,
    encode_broker,
    make_base,
    state_path,
    topic_path,
)
from reconciler.sources.zookeeper import StateNode, decode_state, decode_topic, encode_topic, topic_id_of

BROKERS: Final = (1, 2, 3, 4)
HOSTS: Final = (5, 6)
"""Where the controllers are."""

AT: Final = TopicPartition("orders", 0)
_SETTLED_MS: Final = 500


def expect(what: str, found: object, wanted: object) -> None:
    """Compare what was found.

    Raises:
        BrokenInvariantError: it is not what was wanted.
    """
    if found != wanted:
        raise BrokenInvariantError(f"{what}: found {found!r:.300}, and it should be {wanted!r:.300}")


class ControllerBench:
    """The parts of one scene.

    Attributes:
        crash_at: the controller that is active crashes once before the step of this label; empty: none does.
    """

    def __init__(self, random: Random, *, topic_ids: bool = True, unclean: bool = False) -> None:
        """Register all brokers, and let one of two controllers be elected.

        Raises:
            BrokenInvariantError: a broker is not sent one request that says that it is to have nothing.
        """
        self.random, self.world = random, World(random.getrandbits(32))
        self.zookeeper = ZooKeeper(self.world.timers("zookeeper"))
        self.admin = self.zookeeper.session("admin")
        make_base(self.admin)
        self.brokers = {each: ScriptedBroker(each, self.world, self._may_hold) for each in BROKERS}
        self.sessions: dict[int, Session] = {}
        self.controllers: dict[int, Controller] = {}
        self.crash_at, self._unclean = "", unclean
        for number in self.brokers:
            self.register(number)
        for number in HOSTS:
            self.start_controller(number, topic_ids=topic_ids)
        self.settle()
        kind = RequestType.FULL if topic_ids else RequestType.UNSPECIFIED
        for number, broker in self.brokers.items():
            asked = [(each.type, each.topics) for each in broker.of(LeaderAndIsrRequest)]
            expect(f"what broker {number} of an empty cluster is to have", asked, [(kind, ())])

    @property
    def controller(self) -> Controller:
        """The controller that was elected last.

        Raises:
            BrokenInvariantError: it is not active.
        """
        found = max(self.controllers.values(), key=lambda each: each.epoch)
        if not found.active:
            raise BrokenInvariantError("no controller is active")
        return found

    def start_controller(self, number: int, *, topic_ids: bool = True) -> None:
        """Start a controller, with a session of its own."""
        session = self.zookeeper.session(f"broker-{number}")
        settings = ControllerSettings(
            topic_ids=topic_ids,
            unclean_elections=self._unclean,
            crash_before=self._crashes,
            crashed=session.expire,
        )
        timers, world = self.world.timers(f"broker-{number}"), self.world
        made = Controller(number, lambda: -1, world.network, timers, world.history, settings)
        self.controllers[number], self.sessions[number] = made, session
        made.start(session)

    def settle(self, for_ms: int = _SETTLED_MS) -> None:
        """Let everything happen within a time."""
        self.world.run(for_ms=for_ms)

    def register(self, number: int) -> None:
        """Start a broker, or start it again."""
        self.sessions[number] = session = self.zookeeper.session(f"broker-{number}")
        session.create(broker_path(number), encode_broker(number), ephemeral=True)
        self.brokers[number].registered(session.get(broker_path(number)).czxid)

    def kill(self, number: int) -> None:
        """Stop a broker at once."""
        self.brokers[number].listen(is_up=False)
        self.sessions[number].expire()

    def bounce(self, number: int) -> None:
        """Start a broker again before the controller hears that it went."""
        self.sessions[number].expire()
        self.register(number)

    def succeed(self) -> None:
        """Stop the active controller at once, and let the other one take over."""
        controller = self.controller
        controller.stop()
        self.sessions[controller.node_id].expire()
        self.settle()

    def create_topic(
        self, assignment: Mapping[int, Sequence[int]], topic_id: TopicId | None, topic: str = AT.topic
    ) -> None:
        """Create a topic's node, and let the controller do the rest."""
        self.admin.create(topic_path(topic), encode_topic(topic_id, assignment))
        self.settle()

    def topic_id(self) -> TopicId:
        """Draw a topic ID."""
        return TopicId.random(self.random.randbytes)

    def exists(self, path: str) -> bool:
        """Return whether a node exists."""
        return self.admin.find(path) is not None

    def dump(self) -> dict[str, bytes]:
        """Return everything in ZooKeeper that does not say who the controller is."""
        return {path: data for path, data in self.zookeeper.dump().items() if not path.startswith(CONTROLLER)}

    def assigned(self, at: TopicPartition = AT) -> tuple[int, ...]:
        """Read the brokers of a partition; empty where there are none."""
        found = self.admin.find(topic_path(at.topic))
        return () if found is None else tuple(decode_topic(found.data).partitions.get(at.partition, ()))

    def state(self, at: TopicPartition = AT) -> StateNode:
        """Read a partition's leader and in-sync replicas.

        Raises:
            BrokenInvariantError: there is none.
        """
        node = self.admin.find(state_path(at))
        found = None if node is None else decode_state(node.data)
        if found is None:
            raise BrokenInvariantError(f"{at} has no state")
        return found

    def isr_request(self, isr: Iterable[int], at: TopicPartition = AT) -> AlterIsrRequest:
        """Make the request of a leader for another in-sync set, with everything as it should be."""
        state = self.state(at)
        version = self.admin.get(state_path(at)).version
        epoch = self.brokers[state.leader].epoch
        return AlterIsrRequest(state.leader, epoch, at, None, state.leader_epoch, version, tuple(isr))

    def ask(self, request: AlterIsrRequest, controller: Controller | None = None) -> KafkaError | None:
        """Ask a controller for another in-sync set, by default the active one; None: no answer."""
        answers: list[Response] = []
        (controller or self.controller).handle(f"broker-{request.broker_id}", request, answers.append)
        for each in answers:
            if isinstance(each, IsrAnswer):
                return each.error
        return None

    def alter_isr(self, isr: Iterable[int], at: TopicPartition = AT) -> None:
        """Let the leader have another in-sync set, which is to be granted."""
        expect(f"the answer to a leader of {at}", self.ask(self.isr_request(isr, at)), KafkaError.NONE)
        self.settle()

    def expect_held(self, brokers: Iterable[int] = BROKERS) -> None:
        """Compare what brokers hold with their assignment in ZooKeeper."""
        for number in brokers:
            wanted = {each for each in self._every() if number in self.assigned(each[0])}
            expect(f"what broker {number} holds", sorted(map(str, self.brokers[number].held)), sorted(map(str, wanted)))

    def _every(self) -> set[Held]:
        every = set()
        for topic in self.admin.children("/brokers/topics"):
            node = decode_topic(self.admin.get(topic_path(topic)).data)
            every |= {(TopicPartition(topic, number), topic_id_of(node)) for number in node.partitions}
        return every

    def _may_hold(self, replica: Held, broker: int) -> bool:
        """Return whether a replica may be assigned to a broker; nobody knows where its topic cannot be read."""
        at, topic_id = replica
        found = self.admin.find(topic_path(at.topic))
        if found is None or self.exists(delete_path(at.topic)):
            return False
        node = decode_topic(found.data)
        return node.problem is not None or (topic_id_of(node) == topic_id and broker in self.assigned(at))

    def _crashes(self, step: str) -> bool:
        if not self.crash_at or self.crash_at not in step:
            return False
        self.crash_at = ""
        return True
