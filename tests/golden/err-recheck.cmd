recheck
