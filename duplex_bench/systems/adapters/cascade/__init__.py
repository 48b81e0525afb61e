"""The embedded cascade: an endpointer on the audio, recognition of what was heard, a reply rule, a voice."""
