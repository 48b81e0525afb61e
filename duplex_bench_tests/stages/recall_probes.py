"""The conversation track with its recall probes, on quick engines."""

import copy

from duplex_bench.stages import conversation, recall, recall_speech


def profile(small, **settings):
    table = copy.deepcopy(small)
    table["conversation"]["recall"] = {"enabled": True, "lengths_s": [30.0, 60.0], **settings}
    return table


class Probes:
    """The conversation track with its probes."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.sessions = conversation.lively_sessions(workspace).frame
        self.filled = conversation.gap_fill(workspace, self.sessions).frame
        self.labels = conversation.engine_labels(workspace, self.sessions, self.filled).frame
        given = (workspace, self.sessions, self.filled, self.labels)
        self.identities = recall.identity_prompts(*given)
        self.facts = recall.recall_facts(*given)
        self.questions = recall.recall_questions(
            workspace, self.sessions, self.labels, self.facts.frame, self.identities.frame
        )
        self.speech = recall_speech.question_speech(workspace, self.sessions, self.questions.frame)
        self.items = recall.recall_items(
            *given, self.identities.frame, self.questions.frame, self.speech.frame
        )  # fmt: skip

    def all_items(self):
        found = conversation.candidates(self.workspace, self.sessions, self.filled, self.labels).frame
        points = conversation.points(self.workspace, found).frame
        told = recall.identity_of(self.identities.frame)
        return conversation.items(
            self.workspace, self.sessions, self.filled, self.labels, points, told, self.items
        ).frame  # fmt: skip
