# status: 3
listen
