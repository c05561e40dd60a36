exclude nothing/here
