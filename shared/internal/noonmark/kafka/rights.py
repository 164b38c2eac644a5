"""Which client of Kafka needs which rights: the only list of them.

`docs/rights.md` and `noonmark rights kafka` are made from it, and the tests give every service exactly these.
A right to READ or WRITE a topic or group includes DESCRIBE, as the brokers' authorizer has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from noonmark.kafka.topics import Topics

__all__ = ["Client", "Operation", "Resource", "Right", "kafka_rights"]


_MEMBER: Final = "joins the group, commits offsets"
# librdkafka requires a group, and asks for its coordinator; a refusal would look like an outage.
_NAMED: Final = "its client has this group, which it does not join"
_LEADERS: Final = "checks that partitions have leaders"


class Client(StrEnum):
    """A program with a principal of its own."""

    INTAKE = "intake"
    TRIGGER = "trigger"
    DISPATCHER = "dispatcher"
    WORKER = "worker"
    OBSERVER = "observer"
    API = "api"
    WATCHDOG = "watchdog"
    MIGRATION = "migration"
    OPERATOR = "operator"
    PUBLISHER = "publisher"


class Operation(StrEnum):
    """An operation that the brokers authorize."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DESCRIBE = "Describe"


class Resource(StrEnum):
    """A kind of thing that rights are granted on."""

    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Right:
    """One client's rights on one name, or on all names that begin with it.

    Attributes:
        resource: topic or group.
        name: the name, or what names begin with.
        operations: what the client may do.
        why: what the client does with them.
        prefixed: whether `name` is the beginning of names.
    """

    resource: Resource
    name: str
    operations: tuple[Operation, ...]
    why: str
    prefixed: bool = False

    def covers(self, resource: Resource, name: str) -> bool:
        """Return whether the right is about this topic or group."""
        named = name.startswith(self.name) if self.prefixed else name == self.name
        return resource is self.resource and named


def kafka_rights(
    topics: Topics,
    *,
    pools: Sequence[str] = ("default",),
    bound: Iterable[str] = (),
    emitted: Iterable[str] = (),
) -> Mapping[Client, Sequence[Right]]:
    """Return the rights of every client; those with the trigger's empty list need no access to Kafka.

    Args:
        topics: the installation's names.
        pools: pools of the workers that share one principal.
        bound: further submission topics (`NOONMARK_BOUND_TOPICS`).
        emitted: topics that jobs may write events to (`NOONMARK_EMIT_TOPICS`); a final `*` stands
            for any ending.

    Raises:
        ValueError: a pool's name is not valid, or noonmark itself writes to a bound topic.
    """
    further = topics.further_submissions(bound)
    submissions = (topics.submissions, topics.submissions_bulk, *further)
    measuring = _measuring(topics, submissions)
    return {
        Client.INTAKE: [
            *(_topic(name, Operation.READ, why="reads submissions") for name in submissions),
            _group(topics.group_intake, Operation.READ, why=_MEMBER),
        ],
        Client.TRIGGER: [],
        Client.DISPATCHER: [*_sending(topics, emitted), *measuring],
        Client.WORKER: [right for pool in pools for right in _working(topics, pool)],
        Client.OBSERVER: [
            _topic(topics.lifecycle, Operation.READ, why="reads outcomes"),
            _group(topics.group_observer, Operation.READ, why=_MEMBER),
        ],
        Client.API: [
            _topic(topics.lifecycle, Operation.READ, why="follows outcomes for streams of events"),
            _group(f"{topics.prefix}.api-live", Operation.DESCRIBE, why=_NAMED),
            *measuring,
        ],
        Client.WATCHDOG: [
            _topic(topics.lifecycle, Operation.DESCRIBE, why=_LEADERS),
            _topic(topics.runs_prefix, Operation.DESCRIBE, why=_LEADERS, prefixed=True),
        ],
        Client.MIGRATION: _creating(topics, further),
        Client.OPERATOR: [
            *measuring,
            *(
                _topic(name, Operation.READ, why="`noonmark verify --events`")
                for name in (topics.lifecycle, topics.dead)
            ),
            _group(f"{topics.prefix}.range-reader", Operation.DESCRIBE, why=_NAMED),
        ],
        Client.PUBLISHER: [_topic(name, Operation.WRITE, why="submits jobs") for name in submissions[:2]],
    }


def _sending(topics: Topics, emitted: Iterable[str]) -> list[Right]:
    return [
        _topic(topics.runs_prefix, Operation.WRITE, why="sends run messages", prefixed=True),
        *(
            _topic(name, Operation.WRITE, why="sends events")
            for name in (topics.lifecycle, topics.rejections, topics.dead, topics.alerts)
        ),
        *(_emitted(pattern) for pattern in emitted),
    ]


def _working(topics: Topics, pool: str) -> list[Right]:
    runs, groups = f"{topics.runs_prefix}{pool}.", f"{topics.group_worker_prefix}{pool}."
    return [
        _topic(runs, Operation.READ, why="reads run messages", prefixed=True),
        _group(groups, Operation.READ, why=_MEMBER, prefixed=True),
    ]


def _creating(topics: Topics, further: Iterable[str]) -> list[Right]:
    both, why = (
        (Operation.CREATE, Operation.DESCRIBE),
        "`noonmark db migrate` and `pool create`: create topics",
    )
    return [
        _topic(f"{topics.prefix}.", *both, why=why, prefixed=True),
        *(_topic(name, *both, why=why) for name in further if not name.startswith(f"{topics.prefix}.")),
    ]


def _measuring(topics: Topics, submissions: Iterable[str]) -> list[Right]:
    """Lag: the ends of topics, the age of the first waiting record, and what groups have committed."""
    return [
        *(_topic(name, Operation.READ, why="measures lag and age") for name in submissions),
        _topic(topics.runs_prefix, Operation.READ, why="measures lag and age", prefixed=True),
        _group(topics.group_intake, Operation.DESCRIBE, why="measures lag"),
        _group(topics.group_worker_prefix, Operation.DESCRIBE, why="measures lag", prefixed=True),
        _group(f"{topics.prefix}.lag-probe", Operation.DESCRIBE, why=_NAMED),
    ]


def _topic(name: str, *operations: Operation, why: str, prefixed: bool = False) -> Right:
    return Right(Resource.TOPIC, name, operations, why, prefixed)


def _group(name: str, *operations: Operation, why: str, prefixed: bool = False) -> Right:
    return Right(Resource.GROUP, name, operations, why, prefixed)


def _emitted(pattern: str) -> Right:
    name = pattern.removesuffix("*")
    return _topic(name, Operation.WRITE, why="sends events of jobs", prefixed=name != pattern)
