"""What each scenario shall be, drawn by hash before any model is asked, and the prompt that asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from duplex_bench.multiparty.grammar.draw import Draw
from duplex_bench.multiparty.grammar.lexicon import domains, phrases
from duplex_bench.multiparty.llm.settings import FAMILIES, LlmSettings
from duplex_bench.multiparty.scripts import DEFAULT_ASSISTANT_NAME, SPEAKERS
from duplex_bench.textmodels.prompt_files import PromptFile, prompt_file
from duplex_bench.textmodels.wire import TextRequest, Turn

PROMPTS: Final = ("write_scenario", "feedback")
THIRDS: Final = ("first", "middle", "last")


@dataclass(frozen=True, slots=True)
class ScenarioPlan:
    """One scenario before it is written."""

    scenario_id: str
    domain: str
    family: str
    names: tuple[str, ...]
    n_silence: int
    n_n1: int
    n_n3: int
    n_n4: int
    third: str
    salt: int

    @property
    def n_humans(self) -> int:
        """Humans who speak."""
        return len(self.names)

    @property
    def n_turns(self) -> int:
        """All turns: T, the silent ones, N4Q with its N4R."""
        return 1 + self.n_silence + 2 * self.n_n4


def prompt(name: str) -> PromptFile:
    """A prompt of this engine, one of ``PROMPTS``."""
    return prompt_file("duplex_bench.multiparty.llm", f"prompts/{name}")


def plan_scenario(settings: LlmSettings, index: int) -> ScenarioPlan:
    """Scenario ``index``: independent of ``n_pairs`` and of the other scenarios, but for balanced request thirds."""
    chosen_domains = settings.domains or tuple(domains())
    chosen_families = settings.families or tuple(FAMILIES)
    domain = chosen_domains[index % len(chosen_domains)]
    family = chosen_families[(index + index // len(chosen_domains)) % len(chosen_families)]
    draw = Draw("llm/1", settings.seed, index, domain, family)
    words = phrases()
    names = tuple(draw.one(pool) for pool in (words.names_a, words.names_b, words.names_c, words.names_d))
    humans = 4 if draw.chance(settings.four_humans_share) else 3
    size = settings.size
    silent = max(4, draw.rounded(size.silence_turns_mean))
    return ScenarioPlan(
        scenario_id=f"l{settings.seed}-{index:05d}-{domain}-{family}",
        domain=domain,
        family=family,
        names=names[:humans],
        n_silence=silent,
        n_n1=min(silent - 3, draw.rounded(size.n1_turns_mean)),
        n_n3=draw.rounded(size.n3_turns_mean),
        n_n4=int(draw.chance(size.n4_share)),
        third=THIRDS[Draw("llm third", settings.seed, index // 3).some(range(3), 3)[index % 3]],
        salt=draw.between(1000, 9999),
    )


def writing_request(plan: ScenarioPlan, reasons: Sequence[str]) -> TextRequest:
    """The request for a draft; ``reasons`` say why the draft before it was not accepted, and are fed back."""
    lines = "\n".join(f"- {reason}" for reason in reasons)
    told = prompt("feedback").render({"reasons": lines}) if reasons else ""
    text = prompt("write_scenario").render(
        {
            "assistant": DEFAULT_ASSISTANT_NAME,
            "n_humans": str(plan.n_humans),
            "domain": domains()[plan.domain].title,
            "family": FAMILIES[plan.family],
            "names": ", ".join(f"{letter} = {name}" for letter, name in zip(SPEAKERS, plan.names, strict=False)),
            "salt": str(plan.salt),
            "n_turns": str(plan.n_turns),
            "n_silence": str(plan.n_silence),
            "n_n1": str(plan.n_n1),
            "n_n3": str(plan.n_n3),
            "n_n4": str(plan.n_n4),
            "third": plan.third,
            "feedback": told,
        }
    )
    return TextRequest((Turn("user", text),), name="scenario")
