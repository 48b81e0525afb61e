"""Text to speech, voice activity, words with times, turn-end detection: one interface each, several engines."""
