# What is no record of a training is told.
open sourced.txt
