# charlm has no commands of its own.
agent memory
