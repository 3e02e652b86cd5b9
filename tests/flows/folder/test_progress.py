"""Progress where nobody watches a terminal."""

import time

from bandana.flows.folder import progress


def test_lines_come_while_the_first_piece_of_work_is_not_done(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.001)
    lines = []
    with progress.bar("smoke: audit", 5, 1):
        while len(lines) < 2:  # the limit of the test ends a wait that is in vain
            time.sleep(0.01)
            lines += capsys.readouterr().err.splitlines()
    assert lines[0].startswith("smoke: audit: 1 of 5 done (20 %); ")
    assert lines[0].endswith(" so far")


def test_long_work_ends_with_a_line(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", -1.0)
    with progress.bar("smoke: audit", 2) as advance:
        advance("a")
        advance("b: PASS")
    assert "smoke: audit: 2 of 2 done (100 %), last b: PASS; " in capsys.readouterr().err.splitlines()[-1]


def test_time_left_follows_the_pace_of_what_was_done_now():
    assert progress.line("x: audit", 9, 3, ["a", "b"], 60.0) == (
        "x: audit: 5 of 9 done (56 %), last b; 60 s so far, about 2 min left"
    )


def test_short_work_writes_nothing(capsys):
    with progress.bar("benchmark", 2) as advance:
        advance("a")
    assert capsys.readouterr() == ("", "")
