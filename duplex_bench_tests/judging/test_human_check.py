import csv

import pytest

from duplex_bench.judging.human_check import TASKS, SheetError, read_sheet, results, task_named

pytestmark = pytest.mark.unit
ANSWERS = TASKS["answers"]


def sheet(folder, rows, columns=("draw", "sample", "human", "note")):
    path = folder / "sheet.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def test_a_filled_sheet_comes_back_with_blanks_as_none(tmp_path):
    path = sheet(tmp_path, [("d", "001", "Correct", ""), ("d", "002", " ", "could not hear")])
    assert read_sheet(path, ANSWERS, ["001", "002", "003"]) == {"human": {"001": "correct", "002": None, "003": None}}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("d", "001", "maybe", "")], r"row 2, human: 'maybe' is no answer"),
        ([("d", "009", "correct", "")], r"row 2: sample '009' was not drawn"),
        ([("d", "001", "correct", ""), ("d", "001", "incorrect", "")], r"row 3: sample '001' stands twice"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_row(tmp_path, rows, said):
    with pytest.raises(SheetError, match=said):
        read_sheet(sheet(tmp_path, rows), ANSWERS, ["001"])


def test_a_missing_column_a_missing_file_and_an_unknown_task_are_named(tmp_path):
    with pytest.raises(SheetError, match="column 'human' is missing"):
        read_sheet(sheet(tmp_path, [], ("draw", "sample")), ANSWERS, [])
    with pytest.raises(SheetError, match="cannot be read"):
        read_sheet(tmp_path / "none.csv", ANSWERS, [])
    with pytest.raises(SheetError, match="construction, answers, acknowledgement"):
        task_named("vibes")


def test_ninety_nine_of_a_hundred_as_the_paper_prints_it():
    names = [f"{n:03d}" for n in range(1, 101)]
    verdicts = {name: "correct" if n < 50 else "incorrect" for n, name in enumerate(names)}
    human = {**verdicts, "001": "incorrect"}
    (row,) = results(ANSWERS, {"human": human}, verdicts)
    assert (row["n_agree"], row["n_answered"]) == (99, 100)
    assert row["share"] == pytest.approx(0.99)
    assert row["kappa"] == pytest.approx(0.98)
    assert row["low"] < 0.99 < row["high"]


def test_blank_answers_are_no_disagreement():
    (row,) = results(ANSWERS, {"human": {"001": "correct", "002": None}}, {"001": "correct", "002": "incorrect"})
    assert (row["n_drawn"], row["n_answered"], row["share"]) == (2, 1, 1.0)


def test_nothing_answered_is_no_share():
    (row,) = results(ANSWERS, {"human": {"001": None}}, {"001": "correct"})
    assert (row["share"], row["low"], row["kappa"]) == (None, None, None)


def test_construction_passes_on_yes_and_two_people_are_compared():
    task = TASKS["construction"]
    one = {question.column: {"001": "yes", "002": "no"} for question in task.questions}
    two = {question.column: {"001": "yes", "002": "yes"} for question in task.questions}
    rows = results(task, one, {}, two)
    passes = [row for row in rows if row["compared"] == "passes"]
    people = [row for row in rows if row["compared"] == "two people"]
    assert {row["share"] for row in passes} == {0.5}
    assert {row["share"] for row in people} == {0.5}
    assert len(passes) == len(people) == len(task.questions)
