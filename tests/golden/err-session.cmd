session 7
