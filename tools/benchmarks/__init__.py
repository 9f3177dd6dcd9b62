"""Ours and the peers over the same data, in one run; tools/bench starts them."""
