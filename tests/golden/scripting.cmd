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
pipe help echo | head -n 2
shell exit 0
help echo
help files
apropos tab
history
complete info br
