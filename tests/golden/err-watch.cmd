watch TL abs_mean_gt=many on gradients
