"""What is published: nothing but the package, two equal builds, a bill of materials; the upload alone is left to a person.

In `make test` archives are made by hand and repacked; at night everything is built.
"""

import importlib.util
import io
import json
import subprocess
import sys
import tarfile

import pytest
from documentation import ROOT

from benchmarks.installed import environment, install

_spec = importlib.util.spec_from_file_location("release", ROOT / "deploy" / "release.py")
release = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)


def written(place, files, mtime):
    """An sdist as a build tool writes it, with times and owners of this machine."""
    with tarfile.open(place, "w:gz") as tar:
        for name, text in files:
            info = tarfile.TarInfo(f"bandana_dp-1.0.0/{name}")
            info.size, info.mtime, info.uid, info.uname = len(text), mtime, 1000, "somebody"
            tar.addfile(info, io.BytesIO(text))
    return place


def test_an_archive_depends_on_its_files_alone(tmp_path):
    files = [("bandana/py.typed", b""), ("LICENSE", b"text")]
    one = written(tmp_path / "one.tar.gz", files, 1)
    two = written(tmp_path / "two.tar.gz", files[::-1], 99)
    assert one.read_bytes() != two.read_bytes()
    for place in (one, two):
        release.repack(place, 1_000_000_000)
    assert one.read_bytes() == two.read_bytes()
    assert sorted(release.names_of(one)) == ["LICENSE", "bandana/py.typed"]
    other = written(tmp_path / "other.tar.gz", [("LICENSE", b"Text"), files[0]], 1)
    release.repack(other, 1_000_000_000)
    assert other.read_bytes() != one.read_bytes()


@pytest.mark.parametrize(
    ("name", "is_stranger"),
    [
        ("bandana/flows/cli.py", False),
        ("bandana/py.typed", False),
        ("bandana/experiments/benchmark/arms-five.yaml", False),
        ("bandana/examples/noisy_count.awk", False),
        ("bandana/flows/tracking/charts.js", False),
        ("bandana_dp-1.0.0.dist-info/licenses/LICENSE", False),
        ("tests/test_release.py", True),
        ("bandana/flows/.mypy_cache", True),
        ("bandana/secret.key", True),
        ("bandana_data/own/x.npz", True),
        ("docs/index.md", True),
    ],
)
def test_a_planted_file_that_is_not_of_the_package_is_seen(name, is_stranger):
    assert bool(release.strangers([name], release.WHEEL)) is is_stranger


@pytest.mark.nightly
def test_a_release_is_reproducible_whole_and_installs_from_its_sdist(tmp_path):
    """In `make test`: repacking and the list of what belongs, above."""
    python = environment(tmp_path / "tools")
    install(python, "--no-deps", "--require-hashes", "-r", ROOT / "deploy" / "release.lock")
    command = [python, ROOT / "deploy" / "release.py", tmp_path / "dist"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    wheel, sdist = next((tmp_path / "dist").glob("*.whl")), next((tmp_path / "dist").glob("*.tar.gz"))
    names = release.names_of(wheel)
    assert {"bandana/py.typed", "bandana/experiments/benchmark/version.json", "bandana/flows/demo.yaml"} <= set(names)
    assert {name for name in names if name.startswith("bandana/")} == {
        name for name in release.names_of(sdist) if name.startswith("bandana/")
    }
    bill = json.loads((tmp_path / "dist" / "bandana-dp.cdx.json").read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "bandana-dp")
    locked = {
        line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1].isalnum()
    }
    assert {each["name"] for each in bill["components"]} == locked
    assert all(each["hashes"] if "hashes" in each else each["externalReferences"] for each in bill["components"])
    installed = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "there", sdist]
    subprocess.run(installed, check=True, capture_output=True, timeout=600)
    there = f"import sys; sys.path.insert(0, {str(tmp_path / 'there')!r})"
    code = f"{there}; import bandana; print(bandana.__version__, bandana.__file__)"
    shown = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["1.0.0", str(tmp_path / "there" / "bandana" / "__init__.py")]
