"""What users depend on changes only with the changelog: names, signatures, commands, fields, formats, exit codes."""

import copy
import json
import re

from documentation import ROOT
from public_surface import PLACE, described, differences, flattened, surface

import bandana


def problem(kept, now):
    """What to do about a changed surface; empty where nothing changed."""
    lines = list(differences(kept, now))
    advice = "say it in CHANGELOG.md under the version that it asks for, then: python -m tests.public_surface"
    return "\n".join([f"the public surface changed: {advice}", *lines]) if lines else ""


def test_the_public_surface_is_the_committed_one():
    assert problem(json.loads(PLACE.read_text("utf-8")), json.loads(json.dumps(surface()))) == ""


def test_each_planted_change_is_seen_and_asks_for_the_changelog():
    kept = json.loads(PLACE.read_text("utf-8"))
    planted = (
        (lambda now: now["modules"]["bandana"].pop("load"), "removed: /modules/bandana/load"),
        (lambda now: now["modules"]["bandana"]["audit"].remove("claim"), "removed: /modules/bandana/audit claim"),
        (lambda now: now["exit codes"].update(differs=4), "changed: /exit codes/differs: 3 is now 4"),
        (lambda now: now["commands"]["audit"].append("--fast"), "added: /commands/audit --fast"),
        (lambda now: now["spec"].remove(".horizon: integer"), "removed: /spec .horizon: integer"),
        (lambda now: now["parameters"]["ucrl-vtr joint"].update(ridge=2.0), "changed: /parameters/ucrl-vtr joint/ridge: "),
        (lambda now: now.update(evidence="bandana/evidence/5"), "changed: /evidence: "),
    )
    for change, line in planted:
        now = copy.deepcopy(kept)
        change(now)
        text = problem(kept, now)
        assert "say it in CHANGELOG.md" in text
        assert line in text
        assert text.count("\n") == 1
    assert problem(kept, copy.deepcopy(kept)) == ""


def test_a_signature_and_a_schema_are_described_by_what_a_caller_sees():
    def call(a, *, b=1, **more):
        """A function."""

    class Thing:
        x = 1

        def use(self, y):
            """A method."""

    assert described(call) == ["a", "*b=", "** more"]
    assert described(Thing) == {"call": [], "fields": [], "members": {"x": "attribute", "use": ["self", "y"]}}
    nested = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}}
    assert flattened(nested) == [": object"]
    size = {"type": "object", "properties": {"size": {"type": "integer", "default": 100}}}
    assert flattened(size) == [".size? = 100", ".size?: integer", ": object"]


def test_the_changelog_opens_with_this_version_in_forty_lines():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    titles = [release.partition("\n")[0] for release in releases]
    assert any(re.fullmatch(rf"\[{re.escape(bandana.__version__)}\] - \d{{4}}-\d\d-\d\d", title) for title in titles)
    assert all(release.count("\n") <= 42 for release in releases)  # forty lines, with its title and an empty line
    assert "### Breaks specs" in next(release for release in releases if release.startswith(f"[{bandana.__version__}]"))
