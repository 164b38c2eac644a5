"""`noonmark why …` as operators run it: by name, by id of a job, by id of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.intake.world import open_world
from tests.integration.why.scene import Scene

pytestmark = pytest.mark.postgres


@pytest.fixture
def scene(emptied_database: str, tmp_path: Path) -> Iterator[Scene]:
    with open_world(emptied_database) as world:
        made = Scene(world, tmp_path)
        made.everybody()
        yield made


def test_a_job_is_asked_about_by_name_or_id(noonmark: Callable[..., str], scene: Scene) -> None:
    job = scene.minutely()
    scene.order("pause", job, reason="target is down")

    told = noonmark("why", "tick")

    assert told.splitlines() == [
        "job tick in namespace default is paused",
        "",
        f"The job has been paused since {scene.told(0)}: target is down",
        "",
        "What to do:",
        "- `noonmark job resume tick --namespace default`; `--missed` says what happens to the instants of the pause.",
    ]
    assert noonmark("why", str(job)) == told
    assert noonmark("why", "tick", "--namespace", "default") == told


def test_a_run_is_asked_about_by_its_id_and_scripts_get_the_document(
    noonmark: Callable[..., str], scene: Scene
) -> None:
    run = scene.run(scene.submit())
    scene.clock(30, "trigger", "worker")

    found = json.loads(noonmark("why", str(run), "--json"))

    assert (found["kind"], found["id"]) == ("run", str(run))
    assert found["answers"][0]["code"] == "dispatcher_stopped"


def test_what_is_not_there_is_told_with_where_to_look(noonmark: Callable[..., str], scene: Scene) -> None:
    del scene
    nobody = "00000000-0000-0000-0000-000000000001"
    assert "no job or run" in noonmark("why", nobody, code=1)
    assert "job 'nightly' does not exist in namespace shop" in noonmark(
        "why", "nightly", "--namespace", "shop", code=1
    )


def test_a_name_that_is_misspelt_is_answered_with_the_similar_one(
    noonmark: Callable[..., str], scene: Scene
) -> None:
    scene.submit(name="Nightly-report", schedule="@daily", namespace="shop")
    scene.submit(name="tick", schedule="@daily")
    for words in (
        ("why", "tik"),
        ("job", "show", "tik"),
        ("job", "pause", "tik"),
        ("job", "trigger", "Tik"),
        ("run", "list", "--job", "tik"),
        ("run", "logs", "tik"),
        ("dead", "list", "--job", "tik"),
    ):
        assert "(did you mean 'tick'?); run `noonmark job list`" in noonmark(*words, code=1)
    assert "(did you mean 'Nightly-report'?)" in noonmark(
        "job", "show", "nightly-reprot", "--namespace", "shop", code=1
    )
    assert "did you mean" not in noonmark("job", "show", "nightly-report", code=1)


def test_a_name_that_several_jobs_share_asks_for_an_id(noonmark: Callable[..., str], scene: Scene) -> None:
    jobs = [scene.submit(name="mail", run_at=scene.told(3600)) for _ in range(2)]

    told = noonmark("why", "mail", code=1)

    assert "several jobs have the name 'mail'" in told
    assert all(str(job) in told for job in jobs)
