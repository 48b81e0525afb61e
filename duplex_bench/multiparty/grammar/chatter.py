"""Talk around the task: statements, mentions of the assistant, requests among humans; nothing is said twice."""

from dataclasses import dataclass, field

from duplex_bench.multiparty.grammar.draw import Draw
from duplex_bench.multiparty.grammar.lexicon import Domain, Phrases
from duplex_bench.multiparty.grammar.tasks import Task, fill


@dataclass
class Talk:
    """Draws lines of talk for one script, without repeating one and without touching what the task is about."""

    draw: Draw
    domain: Domain
    words: Phrases
    reserved: frozenset[str]
    _pools: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def around(cls, task: Task, also_reserved: frozenset[str], draw: Draw, domain: Domain, words: Phrases) -> "Talk":
        """Talk for a script about ``task``; ``also_reserved`` are further words of the domain to keep away from."""
        return cls(draw, domain, words, task.used | also_reserved)

    def _next(self, pool: str, lines: list[str]) -> str:
        if not self._pools.get(pool):
            self._pools[pool] = self.draw.some(lines, len(lines))
        return self._pools[pool].pop()

    def chore(self) -> str:
        """Something to do that the task does not mention."""
        return self._next("chore", [chore for chore in self.domain.chores if chore not in self.reserved])

    def _slots(self) -> dict[str, str]:
        domain, reserved = self.domain, self.reserved
        goods = [goods.many for goods in domain.goods if goods.many not in reserved]
        things = [stock.things for stock in domain.stock if stock.things not in reserved]
        objects = [thing.name for thing in domain.objects if thing.name not in reserved]
        return {
            "chore": self.draw.one([chore for chore in domain.chores if chore not in reserved]),
            "many": self.draw.one(goods) if goods else "",
            "things": self.draw.one(things) if things else "",
            "object": self.draw.one(objects) if objects else "",
        }

    def statement(self) -> str:
        """A statement among humans, with {name} left open."""
        slots = self._slots()
        lines = [
            line
            for line in self.domain.chatter + self.words.chatter
            if all(value or "{" + name + "}" not in line for name, value in slots.items())
        ]
        return fill(self._next("statement", lines), slots)

    def mention(self) -> str:
        """Talk about the assistant or a request that asks nothing (N3), with {name} left open."""
        return fill(self._next("mention", list(self.domain.mentions + self.words.mentions)), {"chore": self.chore()})

    def request(self) -> str:
        """A request to another human (N1), with {name} left open for who is asked."""
        return fill(self._next("request", list(self.words.request_human)), {"chore": self.chore()})

    def reply(self) -> str:
        """What the one who was asked says, with {name} left open for who asked."""
        return self._next("reply", list(self.words.reply_human))
