"""One pass over a log dir: what lies there, as rows. Cannot write."""
