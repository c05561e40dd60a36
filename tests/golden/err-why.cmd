# Nothing has fired.
step
why hit 1
