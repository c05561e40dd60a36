tensor nothing
