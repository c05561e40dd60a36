# trainer: none
# define, document, alias, echo, shell, pipe, help.
define twice
  $arg*
  $arg*
end
document twice
Runs a command two times.
end
help twice
twice echo hello\n
alias hi = echo hi,
hi you\n
show print precision
set print precision 5
show print precision
show version
pipe help all | head -n 3
shell exit 0
help echo
help breakpoints
apropos breakpoint
history
complete info br
