# Each event, as catchpoint and for `on`.
catch begin
tcatch begin if step > 5
on begin every 3 if loss < 1 info scalars
catch epoch-begin
tcatch epoch-begin if step > 5
on epoch-begin every 3 if loss < 1 info scalars
catch epoch-end
tcatch epoch-end if step > 5
on epoch-end every 3 if loss < 1 info scalars
catch step-begin
tcatch step-begin if step > 5
on step-begin every 3 if loss < 1 info scalars
catch step-end
tcatch step-end if step > 5
on step-end every 3 if loss < 1 info scalars
catch eval-begin
tcatch eval-begin if step > 5
on eval-begin every 3 if loss < 1 info scalars
catch eval-end
tcatch eval-end if step > 5
on eval-end every 3 if loss < 1 info scalars
catch checkpoint
tcatch checkpoint if step > 5
on checkpoint every 3 if loss < 1 info scalars
catch end
tcatch end if step > 5
on end every 3 if loss < 1 info scalars
info breakpoints
delete
info breakpoints
