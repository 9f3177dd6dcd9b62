"""Benchmarks of our programs and their peers over the same data, in one run; tools/bench starts them."""
