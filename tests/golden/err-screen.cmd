# trainer: none
layout diagonal
