from pathlib import Path

import pytest

from duplex_bench.multiparty.scenario_files import ScenarioFileError, read_scenarios

pytestmark = pytest.mark.unit

TOML = """
[[scenario]]
id = "mine-1"
gold_answer = "12 dollars"
names = {A = "Ben", B = "Anna", C = "Carla"}
turns = [
  {speaker = "A", type = "N2", text = "The tickets are twelve dollars."},
  {speaker = "B", type = "N1", text = "Carla, could you print them?", to = "C"},
  {speaker = "C", type = "T", text = "Aria, what are the tickets?", implicit_text = "Can someone say what they are?"},
  {speaker = "A", type = "N4Q", text = "Aria, where is the map?", answer = "in the car"},
  {speaker = "B", type = "N4R", text = "I see it, it's in the car.", to = "A"},
  {speaker = "C", type = "N2", text = "Then we can go."},
]
"""
CSV = """scenario,speaker,name,type,text,to,implicit_text,answer,gold_answer,common_knowledge
mine-1,A,Ben,N2,The tickets are twelve dollars.,,,,12 dollars,
mine-1,B,Anna,N1,"Carla, could you print them?",C,,,,
mine-1,C,Carla,T,"Aria, what are the tickets?",,Can someone say what the tickets are?,,,
mine-1,A,,N2,Then we can go.,,,,,
"""
YAML = """
scenario:
  - id: mine-1
    gold_answer: Paris
    common_knowledge: The capital of France is Paris.
    names: {A: Ben, B: Anna, C: Carla}
    turns:
      - {speaker: A, type: N2, text: "I love France."}
      - {speaker: B, type: N2, text: "Me too."}
      - {speaker: C, type: T, text: "Aria, what is its capital?", implicit_text: "Can anyone name its capital?"}
      - {speaker: A, type: N3, text: "Aria knew that in school."}
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "text"), [("own.toml", TOML), ("own.csv", CSV), ("own.yaml", YAML)])
def test_valid_files(tmp_path: Path, name: str, text: str) -> None:
    pairs, problems = read_scenarios(write(tmp_path, name, text))
    assert problems == []
    (pair,) = pairs
    assert pair.explicit.request.text.startswith("Aria")
    assert pair.differing == pair.rewritten == ("u03",)
    assert pair.explicit.names == ("Ben", "Anna", "Carla")


def test_a_scenario_with_no_t_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    broken = TOML.replace('type = "T", text = "Aria, what', 'type = "N2", text = "So what')
    path = write(tmp_path, "own.toml", broken + TOML.replace("mine-1", "mine-2"))
    pairs, problems = read_scenarios(path)
    assert [pair.scenario_id for pair in pairs] == ["mine-2"]
    (problem,) = [problem for problem in problems if "one_request" in problem]
    assert str(path) in problem
    assert "scenario 1 (mine-1)" in problem
    assert "there is no T" in problem
    assert "Mark exactly one turn as T" in problem


def test_csv_problems_name_the_row(tmp_path: Path) -> None:
    text = CSV.replace('"Carla, could you print them?"', "Print them.")
    pairs, problems = read_scenarios(write(tmp_path, "own.csv", text))
    assert pairs == []
    (problem,) = problems
    assert "row 3, turn 2: N1 neither names nor implies C [n1_asks_an_existing_human]. Name another human" in problem


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("own.toml", "[[scenario", "not TOML"),
        ("own.toml", "", "no list named scenario"),
        ("own.toml", "scenario = []", "holds no scenario"),
        ("own.toml", "scenario = []\nextra = 1", "unknown key 'extra'"),
        ("own.yaml", "scenario: [", "not YAML"),
        ("own.csv", "scenario,speaker,name,type\n", "row 1: column is missing: 'text'"),
        ("own.csv", CSV.replace("common_knowledge", "mood"), "row 1: column is unknown: 'mood'"),
        ("own.csv", CSV + "mine-1,A,,N2,so,and,so,on,and,on,and,on\n", "row 6: it has more cells"),
        ("own.json", "{}", "rename or convert"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(ScenarioFileError) as refusal:
        read_scenarios(path)
    assert message in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_unusable_bytes_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioFileError, match="UTF-8"):
        read_scenarios(path)
    with pytest.raises(ScenarioFileError, match="no such file"):
        read_scenarios(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('type = "N1"', 'type = "N9"'), "turn 2, type"),
        (('answer = "in the car"', 'anwser = "in the car"'), "turn 4, anwser"),
        (('B = "Anna", ', ""), "Name speakers from A on"),
        (('gold_answer = "12 dollars"', ""), "gold_answer: Field required"),
    ],
)
def test_wrong_cells(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    pairs, problems = read_scenarios(write(tmp_path, "own.toml", TOML.replace(*change)))
    assert pairs == []
    assert message in problems[0]


def test_ids_are_used_once(tmp_path: Path) -> None:
    pairs, problems = read_scenarios(write(tmp_path, "own.toml", TOML + TOML))
    assert len(pairs) == 1
    assert "used twice" in problems[0]
