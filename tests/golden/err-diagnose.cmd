set on-error continue
diagnose now
diagnose --steps none
diagnose --time 0
diagnose --fail-on everything
diagnose --
info rules no-such-rule
