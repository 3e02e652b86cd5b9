"""Builds what is published: wheel, sdist, software bill of materials, and lock file. Everything but the upload.

    make release        # or: python deploy/release.py [FOLDER]

Files are built twice from the commit, by tools of `deploy/release.lock`, which pins each by its hash. Both builds must be
equal byte for byte, and another person gets the same files from the same commit and Python 3.11.
"""

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = re.compile(r"bandana/.*\.(py|typed|yaml|json|j2|css|md|js|csv|awk)")
WHEEL = re.compile(r"bandana_dp-[^/]+\.dist-info/(METADATA|RECORD|WHEEL|entry_points\.txt|top_level\.txt|licenses/LICENSE)")
SDIST = re.compile(
    r"(LICENSE|PKG-INFO|README\.md|pyproject\.toml|setup\.cfg|MANIFEST\.in|bandana_dp\.egg-info/[A-Za-z_.-]+)"
)


def strangers(names: list[str], also: re.Pattern[str]) -> list[str]:
    """Files of an archive that are neither package, license, typing, data nor metadata."""
    return [name for name in names if not PACKAGE.fullmatch(name) and not also.fullmatch(name)]


def names_of(archive: Path) -> list[str]:
    """Files of a wheel or an sdist, of the latter below its folder."""
    if archive.suffix == ".whl":
        return zipfile.ZipFile(archive).namelist()
    with tarfile.open(archive) as tar:
        return [member.name.partition("/")[2] for member in tar.getmembers() if member.isfile()]


def repack(archive: Path, epoch: int) -> None:
    """Writes an sdist anew: sorted, with one time and no owner, so that it depends on its files alone."""
    packed = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as new:
        for member in sorted((each for each in old.getmembers() if each.isfile()), key=lambda each: each.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname, member.mode = epoch, 0, 0, "", "", 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member))
    archive.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


def build(source: Path, place: Path, epoch: int) -> list[Path]:
    """Builds the sdist from a checkout without its history, and the wheel from the sdist."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    run = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place)]
    subprocess.run([*run, "--sdist", str(source)], env=environment, check=True, stdout=subprocess.DEVNULL)
    sdist = next(place.glob("*.tar.gz"))
    repack(sdist, epoch)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as tar:
        tar.extractall(folder, filter="data")
        unpacked = next(Path(folder).iterdir())
        subprocess.run([*run, "--wheel", str(unpacked)], env=environment, check=True, stdout=subprocess.DEVNULL)
    return [next(place.glob("*.whl")), sdist]


def release(place: Path, source: Path, epoch: int) -> list[Path]:
    """Builds twice, compares and checks both, and writes everything into a folder.

    Raises:
      SystemExit: the builds differ, or an archive holds a file that it should not.
    """
    lock = source / "requirements.lock"
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        builds = []
        for name in ("one", "two"):
            copy = Path(folder) / name / "source"
            shutil.copytree(source, copy)  # links become folders, and nothing of the first build is left
            builds.append(build(copy, Path(folder) / name / "dist", epoch))
        for first, second in zip(*builds, strict=True):
            if first.read_bytes() != second.read_bytes():
                raise SystemExit(f"error: two builds of {first.name} differ")
            if wrong := strangers(names_of(first), WHEEL if first.suffix == ".whl" else SDIST):
                raise SystemExit(f"error: {first.name} holds {', '.join(wrong[:5])}")
        files = [Path(shutil.copy(each, place)) for each in builds[0]]
    sbom = place / "bandana-dp.cdx.json"
    command = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "requirements",
        str(lock),
        "--pyproject",
        str(source / "pyproject.toml"),
    ]
    subprocess.run([*command, "--output-reproducible", "--of", "JSON", "-o", str(sbom)], check=True)
    files += [sbom, Path(shutil.copy(lock, place))]
    hashes = "".join(f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files)
    (place / "SHA256SUMS").write_text(hashes)
    return files


def main() -> None:
    """Releases the commit that is checked out; uncommitted changes are not part of it."""
    place = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    epoch = int(subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True))
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.check_output(["git", "archive", "--format=tar", "HEAD"], cwd=ROOT)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="tar")
        release(place, Path(folder), epoch)
    print((place / "SHA256SUMS").read_text(), end="")


if __name__ == "__main__":
    main()
