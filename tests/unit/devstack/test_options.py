import sys
from pathlib import Path

from noonmark.devstack.options import ServiceSpec, StackOptions, default_services


def test_the_default_services_start_in_the_order_of_the_pipeline(tmp_path: Path) -> None:
    services = default_services(cwd=tmp_path)
    assert [service.name for service in services] == [
        *("intake", "trigger", "dispatcher", "observer", "api", "worker")
    ]
    assert all(service.command[0] == sys.executable for service in services)
    assert services[-1].command[-3:] == ("worker", "--pool", "default")


def test_handlers_and_path_are_passed_to_the_worker(tmp_path: Path) -> None:
    worker = default_services(handlers=["a.jobs", "b.jobs"], path="/code", cwd=tmp_path)[-1]
    assert worker.command[-6:] == ("--handlers", "a.jobs", "--handlers", "b.jobs", "--path", "/code")


def test_the_examples_are_handled_where_they_are_and_nothing_else_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "handlers.py").touch()
    worker = default_services(cwd=tmp_path)[-1]
    assert worker.command[-4:] == ("--handlers", "examples.handlers", "--path", str(tmp_path))
    assert "examples.handlers" not in default_services(handlers=["own"], cwd=tmp_path)[-1].command


def test_a_worker_may_take_longer_to_end_than_it_gives_its_runs() -> None:
    assert default_services()[-1].grace_seconds > 30
    assert [service.name for service in default_services() if service.serves_api] == ["api"]


def test_options_reach_a_detached_supervisor_unchanged() -> None:
    options = StackOptions(
        state_dir=Path("/somewhere"),
        detach=True,
        kafka_port=19092,
        migrate=("true",),
        services=(ServiceSpec("one", ("sleep", "1"), ready_path="/x", grace_seconds=2.5),),
    )
    assert StackOptions.from_json(options.to_json()) == options
