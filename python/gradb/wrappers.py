# SPDX-License-Identifier: MIT
"""Functions of classes and modules that are replaced for a while, for the agents of all frameworks."""


class Wrappers:
    """The functions that one object has replaced. `_wrapped` is not empty from the first one until `remove`."""

    def __init__(self):
        self._wrapped = []  # (class or module, name, original or None where it is inherited, wrapper)

    def _wrap(self, where, name, wrapper):
        self._wrapped.append((where, name, vars(where).get(name), wrapper))
        setattr(where, name, wrapper)

    def remove(self):
        """Removes the wrappers. One that was itself wrapped stays and only passes calls on."""
        for where, name, original, wrapper in self._wrapped:
            if vars(where).get(name) is wrapper:
                if original is None:
                    delattr(where, name)
                else:
                    setattr(where, name, original)
        self._wrapped = []
