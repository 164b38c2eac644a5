from noonmark.kafka.producers.topic_directory import (
    ABSENT_RECHECK_SECONDS,
    GRACE_SECONDS,
    PARTITIONS_SECONDS,
    Presence,
    TopicDirectory,
)


class Cluster:
    """A cluster whose topics and answers the test decides, and a clock it moves."""

    def __init__(self, *topics):
        self.topics, self.requests, self.now, self.answers = set(topics), 0, 100.0, True
        self.partitions = 3

    def list_topics(self):
        self.requests += 1
        return dict.fromkeys(self.topics, self.partitions) if self.answers else None

    def clock(self):
        return self.now

    def directory(self):
        return TopicDirectory(self.list_topics, self.clock)


def test_a_topic_seen_once_is_not_asked_for_again():
    cluster = Cluster("a", "b")
    directory = cluster.directory()
    assert directory.lookup(["a", "b"]) == {"a": Presence.PRESENT, "b": Presence.PRESENT}
    directory.lookup(["a", "b"])
    assert cluster.requests == 1


def test_a_missing_topic_is_suspect_for_the_grace_period_only():
    cluster = Cluster("a")
    directory = cluster.directory()
    assert directory.lookup(["a", "new"])["new"] is Presence.SUSPECT
    assert 0 < directory.wait_seconds(["new"]) <= GRACE_SECONDS
    cluster.now += GRACE_SECONDS
    assert directory.wait_seconds(["new"]) <= 0
    assert directory.lookup(["new"])["new"] is Presence.ABSENT


def test_a_topic_that_appears_within_the_grace_period_is_present():
    cluster = Cluster()
    directory = cluster.directory()
    directory.lookup(["new"])
    cluster.topics.add("new")
    cluster.now += GRACE_SECONDS
    assert directory.lookup(["new"])["new"] is Presence.PRESENT


def test_an_absent_topic_is_looked_for_again_at_intervals():
    cluster = Cluster()
    directory = cluster.directory()
    directory.lookup(["new"])
    cluster.now += GRACE_SECONDS
    directory.lookup(["new"])
    for _ in range(100):
        assert directory.lookup(["new"])["new"] is Presence.ABSENT
    assert cluster.requests == 2
    cluster.now += ABSENT_RECHECK_SECONDS
    assert directory.lookup(["new"])["new"] is Presence.ABSENT
    cluster.topics.add("new")
    cluster.now += ABSENT_RECHECK_SECONDS
    assert directory.lookup(["new"])["new"] is Presence.PRESENT


def test_a_cluster_that_does_not_answer_says_nothing_about_topics():
    cluster = Cluster("a")
    cluster.answers = False
    directory = cluster.directory()
    assert directory.lookup(["a"]) == {"a": Presence.UNCHECKED}
    cluster.answers = True
    assert directory.lookup(["a"]) == {"a": Presence.PRESENT}


def test_a_doubted_topic_is_asked_for_anew():
    cluster = Cluster("a")
    directory = cluster.directory()
    directory.lookup(["a"])
    cluster.topics.clear()
    directory.doubt("a")
    assert directory.lookup(["a"])["a"] is Presence.SUSPECT


def test_the_partitions_of_a_topic_are_counted_again_after_a_while():
    cluster = Cluster("a")
    directory = cluster.directory()
    assert (directory.partitions("a"), directory.partitions("absent")) == (3, 0)
    cluster.partitions = 5
    assert directory.partitions("a") == 3
    requests = cluster.requests
    cluster.now += PARTITIONS_SECONDS
    assert directory.partitions("a") == 5
    assert directory.partitions("a") == 5
    assert cluster.requests == requests + 1


def test_a_cluster_that_does_not_answer_leaves_the_count_of_partitions():
    cluster = Cluster("a")
    directory = cluster.directory()
    assert directory.partitions("a") == 3
    cluster.answers = False
    cluster.now += PARTITIONS_SECONDS
    assert directory.partitions("a") == 3
