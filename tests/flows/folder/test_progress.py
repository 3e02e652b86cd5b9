"""Progress where nobody watches a terminal."""

from bandana.flows.folder import progress


def test_lines_are_written_now_and_then_if_they_are_asked_for(capsys, monkeypatch):
    now = iter([0.0, 10.0, 31.0, 31.0, 40.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    with progress.bar("benchmark", 5, 1, seconds_between_lines=30) as advance:
        for name in ("a", "b", "c"):
            advance(name)
    assert capsys.readouterr().err == "benchmark: 3 of 5 done, the last one b\n"


def test_nothing_is_written_otherwise(capsys):
    with progress.bar("benchmark", 2) as advance:
        advance("a")
    assert capsys.readouterr() == ("", "")
