"""One scenario from its draws: units of talk around a task, put in order, given speakers, worded twice."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from duplex_bench.multiparty.derivation import conclude
from duplex_bench.multiparty.grammar.chatter import Talk
from duplex_bench.multiparty.grammar.draw import Draw
from duplex_bench.multiparty.grammar.lexicon import Domain, Phrases, domains, phrases
from duplex_bench.multiparty.grammar.settings import GrammarSettings
from duplex_bench.multiparty.grammar.tasks import FAMILIES, SPEAKER_KEY, Evidence, Task, fill
from duplex_bench.multiparty.scripts import (
    ASSISTANT,
    DEFAULT_ASSISTANT_NAME,
    GROUP,
    SPEAKERS,
    Derivation,
    Fact,
    Pair,
    Script,
    Speaker,
    TurnType,
    Utterance,
)

THIRDS: Final = ("early", "middle", "late")
_OPENER_SHARE: Final = 0.35


@dataclass(slots=True)
class _Turn:
    """A turn being made. ``apart_from`` are turns whose speakers must differ from this one's."""

    text: str
    turn_type: TurnType
    evidence: Evidence | None = None
    addressee: str = GROUP
    answer: str | None = None
    apart_from: tuple["_Turn", ...] = ()
    answers: "_Turn | None" = None
    speaker: Speaker | None = None
    asked: "Speaker | None" = None


Unit = list[_Turn]


def assemble(settings: GrammarSettings, index: int, attempt: int) -> Pair:
    """Pair ``index`` of the draw that ``settings`` name; ``attempt`` counts the draws made of it."""
    chosen_domains = settings.domains or tuple(domains())
    chosen_families = settings.families or tuple(FAMILIES)
    # Domains turn fastest; families shift by one each round, so that every combination comes up.
    domain_id = chosen_domains[index % len(chosen_domains)]
    family = chosen_families[(index + index // len(chosen_domains)) % len(chosen_families)]
    draw = Draw("grammar/1", phrases().version, settings.seed, index, attempt, domain_id, family)
    domain = domains()[domain_id]
    task = FAMILIES[family](draw, domain)
    humans: tuple[Speaker, ...] = SPEAKERS[: 4 if draw.chance(settings.four_humans_share) else 3]
    words = phrases()
    names = tuple(draw.one(pool) for pool in (words.names_a, words.names_b, words.names_c, words.names_d))
    third = THIRDS[Draw("third", settings.seed, index // 3).some(range(3), 3)[index % 3]]
    turns, request = _turns(settings, draw, domain, task, words, third)
    _give_speakers(draw, turns, humans)
    scenario_id = f"s{settings.seed}-{index:05d}-{domain_id}-{family}"
    return _pair(settings, draw, scenario_id, domain_id, task, turns, request, names[: len(humans)])


def _turns(
    settings: GrammarSettings, draw: Draw, domain: Domain, task: Task, words: Phrases, third: str
) -> tuple[list[_Turn], _Turn]:
    size = settings.size
    has_n4 = draw.chance(size.n4_share)
    thing = draw.one([thing for thing in domain.objects if thing.name not in task.used])
    talk = Talk.around(task, frozenset({thing.name}), draw, domain, words)
    evidence = [_Turn(line.text, "N2", evidence=line) for line in task.evidence]
    room = draw.rounded(size.silence_turns_mean) - len(evidence)
    free: list[Unit] = []
    resolved: Unit = []
    if has_n4:
        place = draw.one(thing.places)
        slots = {"object": thing.name, "place": place}
        fact = _Turn(_capital(fill(draw.one(words.resolve.fact), slots)), "N2")
        question = _Turn(fill(draw.one(words.resolve.question), slots), "N4Q", addressee=ASSISTANT, answer=place)
        question.apart_from = (fact,)
        answer = _Turn(fill(draw.one(words.resolve.resolution), slots), "N4R", answers=question)
        answer.apart_from = (question,)
        free.append([fact])
        resolved = [question, answer]
        room -= 1
    n_mentions = draw.rounded(size.n3_turns_mean)
    for _ in range(min(draw.rounded(size.n1_turns_mean), max(1, room))):
        unit = [_Turn(talk.request(), "N1")]
        room -= 1
        if room > n_mentions + 1 and draw.chance(0.5):
            unit.append(_Turn(talk.reply(), "N2", answers=unit[0]))
            room -= 1
        free.append(unit)
    for _ in range(min(n_mentions, max(0, room))):
        free.append([_Turn(talk.mention(), "N3")])
        room -= 1
    distractors = [[_Turn(line, "N2")] for line in task.distractors[:1] if room > 0]
    room -= len(distractors)
    # Something must come after T, whatever the draw.
    free += [[_Turn(talk.statement(), "N2")] for _ in range(max(room, 0 if free else 1))]
    request = _Turn("", "T", addressee=ASSISTANT)
    order = _in_order(draw, [[turn] for turn in evidence], distractors, free, resolved, request, third)
    turns = [turn for unit in order for turn in unit]
    for turn in turns:
        if turn.turn_type in ("N1", "N2", "N3"):
            if draw.chance(_OPENER_SHARE) and turn.answers is None and not turn.text.startswith("Hey "):
                turn.text = _opened(draw.one(words.openers), turn.text)
            # Whoever is asked answers; only talk that is not one half of an exchange runs on.
            for _ in range(draw.rounded(size.elaborations_mean) if turn.turn_type != "N1" else 0):
                turn.text = f"{turn.text} {talk.statement()}"
    return turns, request


def _in_order(
    draw: Draw,
    evidence: list[Unit],
    distractors: list[Unit],
    free: list[Unit],
    resolved: Unit,
    request: _Turn,
    third: str,
) -> list[Unit]:
    """Evidence in its order before T, T in the drawn third, the question that a human resolves after its fact."""
    fact = free[:1] if resolved else []
    loose = draw.some(free[len(fact) :], len(free))
    total = len(evidence) + len(distractors) + len(free) + (1 if resolved else 0)
    least, most = len(evidence) + len(distractors), total - 1
    share = {"early": 0.0, "middle": 0.5, "late": 1.0}[third]
    spare = round(share * (most - least))
    resolve_first = bool(resolved) and spare >= 3 and draw.chance(0.5)
    before: list[Unit] = [*fact, resolved] if resolve_first else (fact if fact and spare and draw.chance(0.5) else [])
    after: list[Unit] = [] if resolve_first else [*(() if before else fact), *([resolved] if resolved else [])]
    moved = loose[: max(0, spare - len(before))]
    kept = loose[len(moved) :]
    if not after and not kept:
        kept = [moved.pop()]
    # A distractor refers to what the evidence is about, so it never opens the conversation.
    told = [evidence[0], *_interleaved(draw, evidence[1:], distractors)]
    early = _interleaved(draw, _interleaved(draw, told, before), moved)
    if early[-1] is resolved:
        # An answer to the resolved question must not run into the request, where something can stand between.
        early = [*early[:-2], early[-1], early[-2]] if early[-2] not in fact else early
    return [*early, [request], *_interleaved(draw, kept, after)]


def _interleaved(draw: Draw, left: list[Unit], right: list[Unit]) -> list[Unit]:
    """Both lists in one, each in its own order."""
    slots = set(draw.some(range(len(left) + len(right)), len(left)))
    first, second = iter(left), iter(right)
    return [next(first) if slot in slots else next(second) for slot in range(len(left) + len(right))]


def _give_speakers(draw: Draw, turns: list[_Turn], humans: tuple[Speaker, ...]) -> None:
    """Nobody speaks twice in a row; evidence comes from different people; who has said least speaks next."""
    said: Counter[Speaker] = Counter()
    witnesses: list[Speaker] = []
    for position, turn in enumerate(turns):
        if turn.answers is not None and turn.answers.turn_type == "N1":
            turn.speaker = turn.answers.asked
        else:
            barred = {other.speaker for other in turn.apart_from}
            previous = turns[position - 1].speaker if position else None
            able = [human for human in humans if human != previous and human not in barred]
            able = able or [human for human in humans if human not in barred]
            if turn.evidence is not None:
                able = [human for human in able if human not in witnesses] or able
            fewest = min(said[human] for human in able)
            speaker = draw.one([human for human in able if said[human] == fewest])
            turn.speaker = speaker
            if turn.evidence is not None:
                witnesses.append(speaker)
        if turn.speaker is not None:
            said[turn.speaker] += 1
        if turn.turn_type == "N1":
            turn.asked = draw.one([human for human in humans if human != turn.speaker])
            turn.addressee = str(turn.asked)
        elif turn.answers is not None:
            turn.addressee = turn.answers.speaker or GROUP


def _pair(
    settings: GrammarSettings,
    draw: Draw,
    scenario_id: str,
    domain: str,
    task: Task,
    turns: list[_Turn],
    request: _Turn,
    names: tuple[str, ...],
) -> Pair:
    words = phrases()
    spoken: list[Utterance] = []
    facts: dict[int, Fact] = {}
    lines = list(task.evidence)
    for number, turn in enumerate(turns):
        speaker: Speaker = turn.speaker or "A"
        utterance_id = f"u{number + 1:02d}"
        others = [name for name, human in zip(names, SPEAKERS, strict=False) if human != speaker]
        whom = [name for name, human in zip(names, SPEAKERS, strict=False) if human == turn.addressee]
        name = whom[0] if whom else draw.one(others)
        resolves = f"u{number:02d}" if turn.turn_type == "N4R" else None
        spoken.append(
            Utterance(
                utterance_id,
                speaker,
                _capital(fill(turn.text, {"name": name})),
                turn.turn_type,
                turn.addressee,
                turn.answer,
                resolves,
            )
        )
        if turn.evidence is not None and turn.evidence.counts:
            key = names[SPEAKERS.index(speaker)] if turn.evidence.key == SPEAKER_KEY else turn.evidence.key
            facts[lines.index(turn.evidence)] = Fact(utterance_id, turn.evidence.quote, turn.evidence.number, key)
    derivation = Derivation(task.operation, tuple(facts[position] for position in sorted(facts)))
    at = turns.index(request)
    asked = {"ask": task.ask, "embedded": task.embedded}
    forms = {
        "explicit": replace(spoken[at], text=fill(draw.one(words.explicit), asked)),
        "implicit": replace(spoken[at], text=fill(draw.one(words.implicit), asked)),
    }
    revised = draw.chance(settings.revise_before_share) and spoken[at - 1].turn_type == "N2"
    gold = conclude(derivation)

    def script(condition: str, utterances: list[Utterance]) -> Script:
        return Script(
            f"{scenario_id}-{condition}", scenario_id, "explicit" if condition == "explicit" else "implicit", domain,
            task.family, tuple(utterances), gold, names, derivation, None, DEFAULT_ASSISTANT_NAME,
        )  # fmt: skip

    explicit, implicit = list(spoken), list(spoken)
    explicit[at], implicit[at] = forms["explicit"], forms["implicit"]
    rewritten = [spoken[at].utterance_id]
    if revised:
        before = implicit[at - 1]
        implicit[at - 1] = replace(before, text=f"{before.text} {draw.one(words.implicit_lead)}")
        rewritten.insert(0, before.utterance_id)
    return Pair(scenario_id, script("explicit", explicit), script("implicit", implicit), tuple(rewritten))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _opened(opener: str, text: str) -> str:
    """``text`` after ``opener``, in lower case unless it begins with "I" or a name."""
    first = text.split(maxsplit=1)[0].rstrip(",.")
    keeps = first == "I" or first.startswith(("I'", "{")) or first == DEFAULT_ASSISTANT_NAME
    return f"{opener} {text if keeps else text[:1].lower() + text[1:]}"
