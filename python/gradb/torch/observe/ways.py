# SPDX-License-Identifier: MIT
"""What leads to what, in the graph of the forward pass that ran last."""
_DEEPEST = 4096
_LOSSES = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "kl_div",
                     "binary_cross_entropy", "binary_cross_entropy_with_logits", "poisson_nll_loss",
                     "gaussian_nll_loss",
                     "sub", "rsub", "__rsub__", "sub_"))
_JOIN = frozenset(("sub", "mse_loss", "l1_loss", "smooth_l1_loss", "cosine_similarity", "cosine_embedding_loss",
                   "cdist",
                   "pairwise_distance", "mul", "matmul", "mm", "bmm", "einsum"))

_CHOICES = frozenset(("argmax", "argmin", "argsort", "nonzero", "eq", "ne", "gt", "ge", "lt", "le", "bincount",
                      "multinomial"))
_SORTS = frozenset(("topk", "sort", "max", "min"))  # they return values, and where they were


class Ways:
    """The edges of the graph, in both directions."""

    def __init__(self, agent):
        self._nodes = {}
        self._next = {}
        for node in list(agent.graph.nodes.values()):
            if node.name.startswith(("backward/", "eval/")) or node.edges is None:
                continue
            self._nodes[node.name] = node
            for edge in node.edges:
                if edge is not None:
                    self._next.setdefault(edge[0].name, []).append(node.name)

    def above(self, name):
        """The names of what a node is computed from, the nearest first."""
        seen, waiting = {name}, [name]
        while waiting and len(seen) < _DEEPEST:
            node = self._nodes.get(waiting.pop(0))
            for edge in node.edges if node is not None else ():
                if edge is not None and edge[0].name not in seen:
                    seen.add(edge[0].name)
                    waiting.append(edge[0].name)
                    yield edge[0].name

    def below(self, name):
        """The names of what is computed from a node, the nearest first."""
        seen, waiting = {name}, [name]
        while waiting and len(seen) < _DEEPEST:
            for following in self._next.get(waiting.pop(0), ()):
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
                    yield following

    def values_below(self, name):
        """The names of what is computed from a node's values, not only from a choice or comparison of them."""
        seen, waiting = {name}, [name]
        while waiting and len(seen) < _DEEPEST:
            one = waiting.pop(0)
            for following in self._next.get(one, ()):
                if following in seen or self.operator(following) in _CHOICES:
                    continue
                if self.operator(one) in _SORTS and not self._reads_values(following, one):
                    continue
                seen.add(following)
                waiting.append(following)
        return seen

    def _reads_values(self, name, before):
        """Whether a node reads the first output of another."""
        return any(edge is not None and edge[0].name == before and edge[1] == 0 for edge in self._nodes[name].edges)

    def operator(self, name):
        """The operator of a node, or ""."""
        node = self._nodes.get(name)
        return node.operator if node is not None else ""

    def inputs(self, name):
        """The names of what a node reads."""
        node = self._nodes.get(name)
        return [edge[0].name for edge in node.edges if edge is not None] if node is not None else []

    def leads_to(self, name, operators):
        """Whether one of those operators is computed from a node."""
        return any(self.operator(one) in operators for one in self.below(name))

    def next_is(self, name, operators):
        """Whether one of those operators reads a node directly."""
        return any(self.operator(one) in operators for one in self._next.get(name, ()))

    def meets_targets(self, name):
        """Whether a loss compares what is computed from a node with something that is not."""
        below = {name, *self.below(name)}
        for one in below:
            node = self._nodes.get(one)
            if node is not None and node.operator in _LOSSES:
                others = [edge[0].name for edge in node.edges if edge is not None and edge[0].name not in below]
                if others or len([edge for edge in node.edges if edge is not None]) < 2:
                    return True
        return False

    def meets_itself(self, name, layers=frozenset()):
        """{"node"} of an operator that compares what a node's layer made with what the same layer made in another pass,
        and nothing else; {} if there is none. layers: operators; the other side may be another layer (as without a
        predictor) that is computed from the same parameters."""
        node = self._nodes.get(name)
        if node is None:
            return {}
        weights = self._weights(node)
        twins = {other.name for other in self._nodes.values() if other.operator == node.operator and weights
                 and weights == self._weights(other)}
        found = self._join_of(name, twins) if len(twins) > 1 else {}
        if not found and layers:
            others = {other.name for other in self._nodes.values() if other.operator in layers
                      and self._weights(other)}
            found = self._join_of(name, others)
        return found

    @staticmethod
    def _weights(node):
        return {edge[0].name for edge in node.edges if edge is not None and edge[0].operator == "Parameter"}

    def _join_of(self, name, layers):
        """{"node"} of an operator that joins what two of those layers made, and nothing else."""
        for one in self.below(name):
            if self.operator(one) in _JOIN:
                edges = self.inputs(one)
                sources = [self._twins_above(edge, layers) for edge in edges]
                if len(edges) == 2 and all(sources) and sources[0] != sources[1] \
                        and self._parameters_above(edges[0]) & self._parameters_above(edges[1]):
                    return {"node": one}
        return {}

    def _parameters_above(self, name):
        return {one for one in self.above(name) if self.operator(one) == "Parameter"}

    def _twins_above(self, name, twins):
        """The layers of `twins` that a node is computed from, if from nothing else; else an empty set."""
        found, seen, waiting = set(), {name}, [name]
        while waiting:
            one = waiting.pop()
            if one in twins:
                found.add(one)
                continue
            node = self._nodes.get(one)
            edges = [edge[0].name for edge in node.edges if edge is not None] if node is not None else []
            if not edges:
                return frozenset()
            for edge in edges:
                if edge not in seen:
                    seen.add(edge)
                    waiting.append(edge)
        return frozenset(found)
