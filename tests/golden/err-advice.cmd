advice nonsense
