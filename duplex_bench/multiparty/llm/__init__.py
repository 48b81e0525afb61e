"""The script engine over text models: prompts as files, the validators of every script, regeneration with reasons."""
