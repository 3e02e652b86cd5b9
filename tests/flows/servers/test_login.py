"""The login of Prefect's servers: random, where only its owner can read it, and the same after a restart."""

import os
import stat

import pytest

from bandana.flows.servers import login
from bandana.flows.texts.mistakes import SpecError


def test_every_login_is_another_with_256_bits():
    found = {login.draw() for _ in range(100)}
    assert len(found) == 100
    for one in found:
        user, _, password = one.partition(":")
        assert user == "bandana"
        assert len(password) >= 43  # 256 bits, six in a character


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_kept_login_is_its_owners_alone_and_outlives_a_restart(tmp_path, open_umask):
    path = tmp_path / "böse daten [v1]" / "login"
    first = login.keep(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == first + "\n"
    assert login.keep(path) == first
    assert [found.name for found in path.parent.iterdir()] == ["login"]


def test_a_login_of_the_users_choice_is_kept(tmp_path):
    path = tmp_path / "login"
    path.write_text("me:correct horse battery staple\n")
    path.chmod(0o400)
    assert login.keep(path) == "me:correct horse battery staple"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_login_that_others_could_read_or_write_is_drawn_anew(tmp_path, mode):
    path = tmp_path / "login"
    path.write_text("me:known\n")
    path.chmod(mode)
    assert login.keep(path) != "me:known"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "\n", "me:two\nlines", "me:ü"])
def test_a_login_that_no_client_could_send_is_drawn_anew(tmp_path, text):
    path = tmp_path / "login"
    path.write_text(text)
    path.chmod(0o600)
    assert login.keep(path).startswith("bandana:")


def test_a_link_to_a_login_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("me:known\n")
    other.chmod(0o600)
    path = tmp_path / "login"
    path.symlink_to(other)
    assert login.keep(path) != "me:known"
    assert other.read_text() == "me:known\n"
    assert not path.is_symlink()


def test_a_file_system_without_modes_is_refused(tmp_path, monkeypatch):
    real = os.fstat

    def everybodys(descriptor):
        found = list(real(descriptor))
        found[stat.ST_MODE] |= 0o077
        return os.stat_result(found)

    monkeypatch.setattr(login.os, "fstat", everybodys)
    with pytest.raises(SpecError, match="can be read by other users whatever its mode"):
        login.keep(tmp_path / "login")
