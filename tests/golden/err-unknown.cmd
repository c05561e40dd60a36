frobnicate the graph
