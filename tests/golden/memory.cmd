step
info memory
catch oom
