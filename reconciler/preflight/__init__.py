"""Would a broker start on these log dirs, and what would it do to them? The answer before it is started.

    question.py           which broker: release and mode, and what it asks of meta.properties
    seen.py               what is looked at: the scan's rows, and what a broker reads besides
    finding.py            what follows from one thing that was found, in order of harm
    rules.py              the table of rules: where each is known from, and the next safe command
    wants.py              which replicas the metadata want here, by the comparison of reconciler.verdicts.join
    log_dir_rules.py      meta.properties, locks, checkpoints, where the metadata log lies
    replica_rules.py      partition dirs by name, by partition.metadata, and by whether they are wanted
    file_rules.py         files in partition dirs, and the metadata log
    judgement.py          all rules together, and what follows from them for the broker as a whole

Only looks. What a broker does is ``reconciler.preflight.releases``'s to say and ``layout.log_dir_set``'s; whether the
cluster wants a replica is ``reconciler.verdicts.join``'s. The answer holds for the moment: a broker that runs
meanwhile, or newer metadata, may change it. Source: FACTS §1.5-1.9, §2, §4.2, §6.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.preflight.evidence import SeenBroker, is_anything_there, look_at_broker
    from reconciler.preflight.judgement import Preflight, preflight
    from reconciler.preflight.question import BrokerAsked, BrokerMode
    from reconciler.preflight.releases import KafkaRelease, Mode, start_with_directory, start_with_metadata
    from reconciler.preflight.rules import FINDING_SCHEMA, SCHEMA_VERSION, Effect, next_command, source_of
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "evidence": ("SeenBroker", "is_anything_there", "look_at_broker"),
            "judgement": ("Preflight", "preflight"),
            "question": ("BrokerAsked", "BrokerMode"),
            "releases": ("KafkaRelease", "Mode", "start_with_directory", "start_with_metadata"),
            "rules": ("Effect", "FINDING_SCHEMA", "SCHEMA_VERSION", "next_command", "source_of"),
        },
    )

__all__ = [
    "FINDING_SCHEMA",
    "SCHEMA_VERSION",
    "BrokerAsked",
    "BrokerMode",
    "Effect",
    "KafkaRelease",
    "Mode",
    "Preflight",
    "SeenBroker",
    "is_anything_there",
    "look_at_broker",
    "next_command",
    "preflight",
    "source_of",
    "start_with_directory",
    "start_with_metadata",
]
