catch divergence if loss > 1
