info memory -x
info memory weights
