# Ends a training in C: it leaves its loop where it asks, and its process has not failed.
on end print step
on step-end if step == 3 kill training
continue
info events
