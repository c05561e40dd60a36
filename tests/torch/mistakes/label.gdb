# A label that is no class.
continue
backtrace
why
kill
