print "x
