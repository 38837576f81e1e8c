"""Series and the trees that they apply to."""
