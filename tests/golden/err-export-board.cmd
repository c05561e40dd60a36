step 2
export tensorboard a b
