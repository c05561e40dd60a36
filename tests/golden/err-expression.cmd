watch 'max >> 3' on gradients
