"""The label review page and its store.

``material`` says what a reviewer is shown, ``regions`` and ``edits`` what a copy of a session's labels is and how it
changes, ``store`` keeps copies, history and decisions in a database, ``app`` serves the page, ``agreement`` compares
people with the engine and with one another, ``formats`` reads and writes other tools' files.
"""
