info watchpoints 4
