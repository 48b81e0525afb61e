import pytest

from duplex_bench.systems.adapters.cascade.quantities import clock_words, quantities
from duplex_bench.systems.adapters.cascade.replies import ReplyRule

pytestmark = pytest.mark.unit

DUTY = ["You are Aria. Otherwise, stay silent."]
RULE = ReplyRule()


HONEY = ["Each jar of honey is $4.", "I think we need six jars of honey."]
DINNER = ["The guests arrive at 10.15.", "Dinner starts 25 minutes after they arrive."]
TRIP = ["The bus leaves at 10:15.", "The train leaves at 1050."]
MAP = ["I put the map in the car.", "I moved the map, it's behind the sofa now."]


@pytest.mark.parametrize(
    ("heard", "request_text", "reply"),
    [
        (["Twelve lemons in the bowl.", "And 7 more lemons here."], "how many lemons do we have altogether?", "19"),
        (["We had 20 eggs.", "I used five of the eggs."], "how many eggs are left?", "15 left"),
        (["Our budget is $50.", "The honey cost us 20 dollars."], "how much money do we have left?", "30 dollars"),
        (HONEY, "how much will the jars of honey cost us in total?", "24"),
        (["I paid 12 dollars for the tape.", "The paint was $8."], "what do the tape and the paint add up to?", "20"),
        (DINNER, "what time does dinner start?", "10:40"),
        (TRIP, "how many minutes are there between the bus leaving and the train leaving?", "35"),
        (MAP, "where is the map now?", "behind the sofa now"),
        (["The soup takes 20 minutes.", "The pie takes 90 minutes."], "which dish takes the longest?", "The pie"),
        (["The soup costs $9.", "The pie costs $4."], "which dish is the cheapest?", "The pie"),
        (["There are 12 lemons.", "Last year we had 40 lemons.", "And 3 lemons."], "how many lemons in total?", "15"),
        ([], "what is the answer to everything?", "didn't catch"),
        (["I'll set the table."], "who is going to set the table?", "can't tell your voices apart"),
    ],
)  # fmt: skip
def test_what_was_heard_is_answered(heard, request_text, reply):
    said = RULE.reply([*DUTY, *heard], f"Aria, {request_text}")
    assert reply in said


@pytest.mark.parametrize(
    ("turn", "answers"),
    [
        ("Aria, where is the map?", True),
        ("Hey Area. Where is the map?", True),
        ("Okay. Can anyone tell me where the map is?", True),
        ("Ben, could you get the map?", False),
        ("Where is the map, Ben?", False),
        ("I could ask Aria about it later, there's no rush.", False),
        ("Aria, where is the map? Never mind. I have it. It's here.", False),
        ("I lost the map.", False),
    ],
)
def test_under_a_duty_only_requests_to_the_assistant_are_answered(turn, answers):
    assert (RULE.reply([*DUTY, "The map is in the car."], turn) is not None) is answers


def test_while_the_duty_is_given_it_is_silent():
    assert RULE.reply([], "Hello Aria. Otherwise, stay silent.") is None
    assert RULE.reply(["Hello."], "  ") is None


def test_without_a_duty_it_talks_about_what_it_heard_and_says_the_same_each_time():
    places = ("mountains", "harbour", "cinema", "stadium", "library", "theatre", "fairground", "vineyard")
    said = {place: RULE.reply([], f"We went to the {place}.") for place in places}
    assert len(set(said.values())) > 2
    assert any(place in line for place, line in said.items())
    assert RULE.reply([], "We went to the lake.") == ReplyRule().reply([], "We went to the lake.")


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("It's $12 or fifteen dollars", "dollars", (12, 15)),
        ("twenty-five minutes", "minutes", (25,)),
        ("at 10:15, 10.15, 1015 and ten fifteen", "clocks", (615, 615, 615, 615)),
        ("twelve oh five", "clocks", (5,)),
        ("thirteen and 40", "counts", (13, 40)),
        ("nothing here", "counts", ()),
    ],
)
def test_numbers_are_read_as_recognisers_write_them(text, kind, values):
    assert getattr(quantities(text), kind) == values


@pytest.mark.parametrize(("minutes", "words"), [(615, "10:15"), (0, "12:00"), (725, "12:05"), (59, "12:59")])
def test_clock_times_are_said_on_the_twelve_hour_dial(minutes, words):
    assert clock_words(minutes) == words
