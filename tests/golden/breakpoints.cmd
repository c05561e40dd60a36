# Breakpoints: kinds, numbers, counts, commands.
break type:MatMul
break nothing/here
tbreak type:LayerNorm
info breakpoints
disable 1
enable once 2
ignore 3 1
info breakpoints
delete 2
ignore 3 0
commands 3
  silent
  echo in the body\n
  continue
end
enable 1
continue
continue 3
disable 1
info breakpoints
delete
info breakpoints
break type:Softmax
continue
kill
info target
