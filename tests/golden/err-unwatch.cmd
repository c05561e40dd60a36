unwatch 1
