"""The controller in a broker's process: stands for election, leads the cluster once elected, resigns when fenced.

Everything that reaches it goes through one place, which ends it when another controller has written since, when its
session is over, or when the settings ask for a crash there. Source: Kafka 2.8's KafkaController; KIP516-10; KIP4-1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.controller.active import ActiveController, Extension, Watches, take_over
from reconciler.simulator.controller.brokers import alter_isr, prepare_shutdown
from reconciler.simulator.controller.context import ControllerContext
from reconciler.simulator.controller.requests import Channels
from reconciler.simulator.controller.settings import ControllerCrashError, ControllerMovedError, ControllerSettings
from reconciler.simulator.controller.store import ClusterNodes, elect, elected
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse, Answer, Journal, Network, Timers
from reconciler.simulator.zookeeper import CONTROLLER, Session, SessionExpiredError

_T = TypeVar("_T")


class Controller:
    """One controller. The one that owns ``/controller`` is active; a fenced one may believe that it is."""

    def __init__(  # noqa: PLR0917
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        network: Network,
        timers: Timers,
        journal: Journal,
        settings: ControllerSettings | None = None,
        *,
        extensions: Sequence[Callable[[ActiveController], Extension]] = (),
    ) -> None:
        """Do nothing until it is started.

        The broker epoch is -1 where the broker is not registered. Each extension, such as fewer partitions, is made
        anew at every election.
        """
        self.node_id = node_id
        self._broker_epoch, self._network, self._timers = broker_epoch, network, timers
        self._journal, self._settings = journal, settings if settings is not None else ControllerSettings()
        self._extensions = extensions
        self._session: Session | None = None
        self._active: ActiveController | None = None

    @property
    def active(self) -> bool:
        """Whether it believes that it is the controller."""
        return self._active is not None

    @property
    def epoch(self) -> int:
        """Its controller epoch; 0 while it is not active."""
        return self.context.epoch

    @property
    def context(self) -> ControllerContext:
        """Its knowledge of the cluster; empty while it is not active."""
        return ControllerContext() if self._active is None else self._active.core.context

    @property
    def work(self) -> ActiveController | None:
        """Its parts while it is active."""
        return self._active

    @property
    def extensions(self) -> list[Extension]:
        """Its extensions while it is active, in the order in which they were given."""
        return [] if self._active is None else self._active.extensions

    def start(self, session: Session) -> None:
        """Stand for election with a session; to be called again with a new session after the last is over."""
        self._resign("it starts with a new session")
        self._session = session
        session.watch(CONTROLLER, lambda path: self._run(lambda: self._controller_changed(session)))
        self._run(self._stand)

    def stop(self) -> None:
        """Crash: forget everything. ZooKeeper and the brokers keep their state."""
        self._forget()
        self._session = None

    def handle(self, sender: str, request: AlterIsrRequest, answer: Answer) -> None:
        """Answer a leader that asks for another in-sync set; NOT_CONTROLLER while it is not active.

        A controller that is fenced, or crashes meanwhile, does not answer.
        """
        active = self._active
        if active is None:
            answer(AlterIsrResponse(KafkaError.NOT_CONTROLLER))
            return

        def act() -> None:
            active.brokers.look()  # else a state could keep a restarted broker in sync, which nobody would notice
            response = alter_isr(active.core, request)
            answer(response)
            if response.error is KafkaError.NONE:
                active.reassignments.complete(request.partition)

        self._run(act)

    def reassign(
        self, assignments: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, KafkaError]:
        """Begin, change or cancel reassignments; see ``Reassignments.reassign``. NOT_CONTROLLER while not active."""
        refused = dict.fromkeys(assignments, KafkaError.NOT_CONTROLLER)
        return self._ask(lambda active: active.reassignments.reassign(assignments), refused)

    def elect_preferred(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError]:
        """Make first replicas lead; see ``Reassignments.elect_preferred``. NOT_CONTROLLER while not active."""
        wanted = list(partitions)
        refused = dict.fromkeys(wanted, KafkaError.NOT_CONTROLLER)
        return self._ask(lambda active: active.reassignments.elect_preferred(wanted), refused)

    def catch_up(self) -> None:
        """Handle now what brokers did, while it is active: a state that is written anew hides a restart before it."""
        self._ask(lambda _active: None, None)

    def delete_topics(self, topics: Iterable[str]) -> dict[str, KafkaError]:
        """Delete topics, and answer at once (KIP516-10); see ``TopicChanges.delete``. NOT_CONTROLLER if not active."""
        wanted = list(topics)
        refused = dict.fromkeys(wanted, KafkaError.NOT_CONTROLLER)
        return self._ask(lambda active: active.topics.delete(wanted), refused)

    def prepare_shutdown(self, broker: int, broker_epoch: int) -> tuple[KafkaError, list[TopicPartition]]:
        """Prepare for a broker's stop; see ``prepare_shutdown``.

        Returns:
            NONE, NOT_CONTROLLER, or STALE_BROKER_EPOCH when the broker is not registered with that epoch; and the
            partitions that it still leads.
        """
        nothing: list[TopicPartition] = []

        def act(active: ActiveController) -> tuple[KafkaError, list[TopicPartition]]:
            if active.core.context.brokers.get(broker) != broker_epoch:
                return KafkaError.STALE_BROKER_EPOCH, nothing
            left = prepare_shutdown(active.core, active.partitions, active.replicas, broker)
            return KafkaError.NONE, left

        return self._ask(act, (KafkaError.NOT_CONTROLLER, nothing))

    def _stand(self) -> None:
        """Try to be elected, and take over after success."""
        session = self._session
        if session is None or self._active is not None:
            return
        self._step("stand for election")
        won = elect(session, self.node_id, self._timers.now_ms())
        if won is None:
            return
        context = ControllerContext(*won)
        channels = Channels(
            self.node_id, self._network, self._settings, later=self._later, guarded=self._run, step=self._step
        )
        nodes = ClusterNodes(session, context, self._step)
        active = ActiveController(
            self.node_id,
            self._settings,
            context,
            nodes=nodes,
            channels=channels,
            say=self._say,
            later=self._later,
            extensions=self._extensions,
        )
        self._active = active
        self._say(f"is the controller with epoch {context.epoch}, in broker epoch {self._broker_epoch()}")
        Watches(session, active, lambda act: self._run_for(active, act), self._later).begin()
        take_over(active)

    def _controller_changed(self, session: Session) -> None:
        if session is not self._session:
            return
        found = elected(session)
        if found != self.node_id:
            self._resign("another is the controller" if found is not None else "there is no controller")
        if found is None:
            self._stand()

    def _ask(self, act: Callable[[ActiveController], _T], refused: _T) -> _T:
        """Do an administrator's request; ``refused`` is the answer of a controller that is not active."""
        answers = [refused]
        active = self._active
        if active is not None:
            self._run_for(active, active.brokers.look)
            self._run_for(active, lambda: answers.append(act(active)))
        return answers[-1]

    def _later(self, delay_ms: int, label: str, act: Callable[[], None]) -> None:
        active = self._active
        self._timers.after(delay_ms, f"controller {self.node_id}: {label}", lambda: self._run_for(active, act))

    def _run_for(self, active: ActiveController | None, act: Callable[[], None]) -> None:
        """Call a function for one term of office, unless that is over."""
        if active is not None and active is self._active:
            self._run(act)

    def _run(self, act: Callable[[], None]) -> None:
        """Call a function; the one place where the controller acts."""
        try:
            act()
        except (ControllerMovedError, SessionExpiredError) as error:
            self._resign(str(error))
        except ControllerCrashError as error:
            self._say(f"crashes: {error}")
            self.stop()
            if self._settings.crashed is not None:
                self._settings.crashed()

    def _step(self, step: str) -> None:
        if self._settings.crash_before(step):
            raise ControllerCrashError(f"before this step: {step}")

    def _resign(self, reason: str) -> None:
        if self._active is not None:
            self._say(f"resigns from epoch {self.epoch}: {reason}")
        self._forget()

    def _forget(self) -> None:
        if self._active is not None:
            self._active.core.channels.close_all()
        self._active = None

    def _say(self, text: str) -> None:
        self._journal.say(f"controller {self.node_id}", text)
