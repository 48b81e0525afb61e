"""The release bundle of a run: what it holds, how it is made, checked and scored again."""
