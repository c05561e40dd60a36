# A training cannot be run beside itself.
lockstep @1 @1
