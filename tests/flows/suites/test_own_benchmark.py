"""The shipped spec with an algorithm of one's own: played, audited, kept, and computed again where a file was edited."""

import shutil
from pathlib import Path

import pytest
import yaml

import bandana
from bandana.flows.cells import replicates

EXAMPLES = Path(__file__).parents[3] / "examples"
FEW = {"horizon": 400, "replications": 4, "audit": {"rounds": 64, "replays": 5000, "examples": 20}}


@pytest.mark.slow
def test_the_example_is_played_audited_kept_and_resumed(tmp_path, monkeypatch):
    """Seeds are fixed; with others, one of three honest audits would fail with probability of at most 15 %."""
    for name in ("own_benchmark.yaml", "own_bandit.py"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    spec, played = tmp_path / "own_benchmark.yaml", []
    spec.write_text(yaml.safe_dump(yaml.safe_load(spec.read_text()) | FEW, sort_keys=False))
    play = replicates.play
    monkeypatch.setattr(replicates, "play", lambda block: (played.append(block.cell.name), play(block))[1])

    def run(**options):
        played.clear()
        return bandana.run(spec, data=tmp_path / "data", executor="local", **options).frame().set_index("cell")

    first = run(audit=True)
    own = [name for name in first.index if name.startswith("episodic-greedy")]
    assert own == ["episodic-greedy mu=0.3", "episodic-greedy mu=1"] + [
        f"episodic-greedy mu={mu} without noise" for mu in (0.3, 1)
    ]
    verdicts = first["verdict"].dropna()
    assert len(verdicts) == 3
    assert "FAIL" not in set(verdicts)
    assert sorted(played) == sorted(first.index)
    assert {"uniform play", "greedy"} <= set(first.index)
    run()
    assert not played
    bandit = tmp_path / "own_bandit.py"
    bandit.write_text(bandit.read_text().replace("np.argmax(released.total", "np.argmin(released.total"))
    edited = run()
    assert sorted(played) == sorted(own)
    assert edited["regret"]["episodic-greedy mu=1"] > first["regret"]["episodic-greedy mu=1"]
