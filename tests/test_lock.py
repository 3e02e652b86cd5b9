"""The lock files: every package once, exactly, with hashes, in the versions of the constraints, and naming no host."""

import re
import tomllib

from documentation import ROOT, pages
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_ENTRY = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9A-Za-z.!]+) \\\n(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
)


def _locked(place="requirements.lock"):
    text = (ROOT / place).read_text()
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    found = list(_ENTRY.finditer(body))
    assert "".join(entry.group() for entry in found) == body  # nothing else stands there, so no address of a server either
    names = [entry["name"] for entry in found]
    assert names == sorted(set(names))
    return {entry["name"]: entry["version"] for entry in found}


def test_the_lock_holds_every_package_once_with_hashes():
    assert len(_locked()) > 200


def test_the_lock_and_the_constraints_agree():
    locked = _locked()
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    asked = [Requirement(line) for line in lines]
    checked = [one for one in asked if canonicalize_name(one.name) in locked]
    assert len(checked) >= len(asked) - 1  # diffprivlib is no dependency of the tests
    for one in checked:
        assert one.specifier.contains(locked[canonicalize_name(one.name)]), one


def test_the_lock_holds_what_bandana_and_its_tests_ask_for():
    locked = _locked()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    left_out = ("diffprivlib", "gymnasium", "keel", "release")
    asked = [line for extra, lines in extras.items() if extra not in left_out for line in lines]
    for line in [*project["dependencies"], *asked]:
        one = Requirement(line)
        if canonicalize_name(one.name) != project["name"]:
            assert one.specifier.contains(locked[canonicalize_name(one.name)], prereleases=True), line


def test_the_tools_of_a_release_have_a_lock_of_their_own():
    tools = _locked("deploy/release.lock")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for line in extras["release"]:
        one = Requirement(line)
        assert one.specifier.contains(tools[canonicalize_name(one.name)]), line
    assert tools["setuptools"] == _locked()["setuptools"]
    assert "-r deploy/release.lock" in (ROOT / "Makefile").read_text("utf-8")


def test_every_install_line_of_the_documentation_is_pinned():
    found = {}
    for path in pages():
        text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
        for line in re.findall(r"pip install ([^`\n&;)]*)", text):
            found[path.name, line] = line
    assert len(found) > 8
    for (name, _), line in found.items():
        words = [word.strip("\"'") for word in line.split()]
        values = {words[index + 1] for index, word in enumerate(words[:-1]) if word in ("-c", "-r", "-e")}
        asked = [word for word in words if not word.startswith("-") and word not in values]
        assert all("==" in word or (word == "." and "--no-deps" in words) for word in asked), f"{name}: pip install {line}"
        is_held = bool({"constraints.txt", "requirements.lock"} & values) or ("." in values and "--no-deps" in words)
        assert asked or is_held, f"{name}: pip install {line}"
