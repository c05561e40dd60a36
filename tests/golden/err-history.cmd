print $4
