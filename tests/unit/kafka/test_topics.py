import pytest

from noonmark.core.states import Lane
from noonmark.kafka.topics import PartitionCounts, Topics

WEEK_MS = str(7 * 24 * 3600 * 1000)


def test_names_are_built_below_the_prefix():
    topics = Topics("acme")
    assert topics.submissions == "acme.submissions"
    assert topics.submissions_bulk == "acme.submissions.bulk"
    assert topics.runs("gpu-1", Lane.HIGH) == "acme.runs.gpu-1.high"
    assert topics.group_intake == "acme.intake"
    assert topics.group_worker("gpu-1", Lane.LOW) == "acme.worker.gpu-1.low"


@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("pool", ["default", "a", "0", "a_b-c", "x" * 48])
def test_a_runs_topic_can_be_taken_apart_again(pool, lane):
    topics = Topics()
    assert topics.parse_runs(topics.runs(pool, lane)) == (pool, lane)


@pytest.mark.parametrize(
    "topic",
    ["noonmark.runs.default", "noonmark.runs.a.b.high", "noonmark.runs..high", "noonmark.runs.Default.high",
     "noonmark.runs.default.urgent", "noonmark.submissions", "other.runs.default.high", ""],
)  # fmt: skip
def test_any_other_name_is_no_runs_topic(topic):
    assert Topics().parse_runs(topic) is None


@pytest.mark.parametrize("pool", ["", "a.b", "A", "-a", "x" * 49, "a b", "a\n"])
def test_a_pool_name_that_would_break_topic_names_is_refused(pool):
    with pytest.raises(ValueError, match="not a valid pool name"):
        Topics().runs(pool, Lane.NORMAL)
    with pytest.raises(ValueError, match="not a valid pool name"):
        Topics().group_worker(pool, Lane.NORMAL)


def test_every_topic_of_an_installation_is_specified_once():
    specs = {s.name: s for s in Topics().topic_specs(["default", "gpu"], replication=3)}
    assert len(specs) == 6 + 2 * 3
    assert specs["noonmark.runs.gpu.low"].partitions == 6
    assert specs["noonmark.runs.gpu.low"].replication == 3
    assert specs["noonmark.runs.gpu.low"].config["retention.ms"] == WEEK_MS
    assert specs["noonmark.lifecycle"].config["retention.ms"] == WEEK_MS
    # No client's clock decides whether the brokers accept a record.
    assert {spec.config["message.timestamp.type"] for spec in specs.values()} == {"LogAppendTime"}
    assert specs["noonmark.dead"].partitions == specs["noonmark.rejections"].partitions == 1
    assert int(specs["noonmark.dead"].config["retention.ms"]) == 30 * 24 * 3600 * 1000


def test_partition_counts_can_be_chosen():
    specs = {
        s.name: s for s in Topics().topic_specs(["default"], counts=PartitionCounts(submissions=2, runs=12))
    }
    assert specs["noonmark.submissions"].partitions == 2
    assert specs["noonmark.runs.default.high"].partitions == 12


def test_bound_topics_beside_the_usual_two_are_further_topics_of_submissions() -> None:
    topics = Topics("acme")
    bound = ["acme.submissions", "acme.submissions.bulk", "acme.submissions.shop", "orders", "noonmark.dead"]
    assert topics.further_submissions(bound) == ["acme.submissions.shop", "orders", "noonmark.dead"]
    (spec,) = topics.submission_specs(["orders"], counts=PartitionCounts(submissions=3))
    assert (spec.name, spec.partitions) == ("orders", 3)
    # The expiry of signatures is judged by the broker's stamp.
    assert spec.config["message.timestamp.type"] == "LogAppendTime"


@pytest.mark.parametrize("name", ["a.lifecycle", "a.rejections", "a.dead", "a.runs.default.high", "a.runs.x"])
def test_what_noonmark_writes_itself_never_comes_back_as_submissions(name: str) -> None:
    with pytest.raises(ValueError, match="written by noonmark itself"):
        Topics("a").further_submissions([name])
