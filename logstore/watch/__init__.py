"""What changed in log dirs since the last look."""
