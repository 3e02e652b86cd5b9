"""The header of a user's table: without one, the first user's values would be the names that reports publish."""

import numpy as np
import pytest

from bandana.flows.problems.finite_arms import TableSpec, parse_table
from bandana.flows.texts.mistakes import SpecError

SECRET = "0.8125"


def _read(tmp_path, text, name="table.csv", encoding="utf-8", **fields):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return parse_table(TableSpec(kind="table", path=path, low=-1, high=1, **fields), path.read_bytes())


@pytest.mark.parametrize(
    "cell",
    [
        SECRET, f" {SECRET} ", f"+{SECRET}", "8.125e-1", "1", "-1", "nan", "inf", "-Infinity", '"0,8125"', "1_0", "٣", " .5",
        "12%", "-12 %", "$0.12", "US$0.12", "€5", "5 €", '"1,234.50"', "1 234", "1'234", "0x10", "１２", "1e999", "10 mg",
        "2024-01-01", "01/02/2024", "1.2.2024", '"Jan 3, 2024"', '"Monday, 3 May"', "12:30", "12:30:59", "2024-01-01T12:30Z",
        "true", "FALSE", "yes", "No", "NA", "N/A", "null", "NaN", "Infinity", "y",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "d41d8cd98f00b204", "anna.b@example.org", "https://example.org/a",
        "+49 30 901820", "(030) 901820", "fe80:0:0:1", "fe80-12-ab-cd", "10.0.0.1", "#12", "[0.5", "'1'",
    ],
)  # fmt: skip
@pytest.mark.parametrize("column", [0, 2])
def test_what_could_be_a_value_is_no_name_of_an_action(tmp_path, cell, column):
    cells = ["letter", "call", "visit"]
    cells[column] = cell
    with pytest.raises(SpecError) as caught:
        _read(tmp_path, ",".join(cells) + "\n0,1,0\n1,1,1\n")
    said = str(caught.value)
    assert "table.csv:1: " in said
    assert f"column {column + 1} of the header could be a value" in said
    assert "put a line of names such as letter,call above it; write 'dose 10 mg' for 10 mg" in said
    bare = cell.strip('" ')
    assert len(bare) < 4 or bare not in said.replace("10 mg", "").replace("above", "")
    with pytest.raises(SpecError, match="could be a value"):
        _read(tmp_path, ",".join(cells) + "\n0,1,0\n1,1,1\n", public=["values"])


def test_a_file_without_a_header_keeps_its_first_user_to_itself(tmp_path):
    with pytest.raises(SpecError) as caught:
        _read(tmp_path, f"{SECRET},0.4375\n0,1\n")
    assert SECRET not in str(caught.value)
    assert "0.4375" not in str(caught.value)
    with pytest.raises(SpecError, match=rf"column 1 of the header \('{SECRET}'\) could be a value"):
        _read(tmp_path, f"{SECRET},0.4375\n0,1\n", public=["values"])


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("letter,,visit", "column 2 of the header is empty: name the action, or remove the column"),
        ("letter,call,  ", "column 3 of the header is empty"),
        ('letter,"",visit', "column 2 of the header is empty"),
        ("letter,call,letter", "column 3 of the header is the same as column 1: each action needs a name of its own"),
        ("letter,call, call ", "column 3 of the header is the same as column 2"),
        ('letter,"two\nlines",visit', "column 2 of the header holds a line break or a control character"),
        ("letter,a\tb,visit", "column 2 of the header holds a line break"),
        ("letter;call;visit", "needs a header of at least 2 action names, separated by commas"),
        ("", "needs a header of at least 2 action names"),
    ],
)
def test_a_header_that_names_no_actions_is_refused(tmp_path, header, said):
    with pytest.raises(SpecError) as caught:
        _read(tmp_path, header + "\n0,1,0\n")
    assert said in str(caught.value)
    assert "table.csv" in str(caught.value)


@pytest.mark.parametrize(("encoding", "newline"), [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-8-sig", "\n")])
def test_marks_of_spreadsheets_and_blanks_are_no_part_of_a_name(tmp_path, encoding, newline):
    text = newline.join([' Brief ,"Anruf (früh), kurz",dose 10', "0, 1 ,0.5", "1,0,-1"]) + newline
    table = _read(tmp_path, text, encoding=encoding)
    assert table.names == ("Brief", "Anruf (früh), kurz", "dose 10")
    np.testing.assert_array_equal(table.rewards, [[0, 1, 0.5], [1, 0, -1]])


def test_a_marked_file_without_a_header_is_refused_too(tmp_path):
    with pytest.raises(SpecError, match="column 1 of the header could be a value"):
        _read(tmp_path, f"{SECRET},1\n0,1\n", encoding="utf-8-sig")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_told_without_a_byte_of_the_file(tmp_path, encoding):
    with pytest.raises(SpecError, match=r"is not UTF-8 \(byte \d+\): save it as CSV in UTF-8$") as caught:
        _read(tmp_path, "Brief,Prüfung\n0,1\n", encoding=encoding)
    assert "0x" not in str(caught.value)


def test_a_header_alone_is_no_table(tmp_path):
    with pytest.raises(SpecError, match="has a header and no rows"):
        _read(tmp_path, "letter,call\n")


@pytest.mark.parametrize(
    "names",
    [
        ("arm_1", "placebo"), ("dose 10 mg", "dose 20 mg"), ("none", "letter"), ("A", "B"), ("t1", "t2"), ("off 5%", "May"),
        ("March", "Sunday"), ("été", "ア"), ("feedback", "facade"), ("monthly-2", "day-3"), ("e-mail", "SMS 2"),
        ("face-to-face", "decaf"), ("information", "nano"),
    ],
)  # fmt: skip
def test_names_of_actions_are_taken(tmp_path, names):
    assert _read(tmp_path, ",".join(names) + "\n0,1\n").names == names
