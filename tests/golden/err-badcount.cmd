next zero
