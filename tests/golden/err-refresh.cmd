# No graph was interrupted.
refresh graph
