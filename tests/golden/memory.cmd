step
info memory
