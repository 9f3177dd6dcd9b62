"""What must hold of a simulated cluster: at every moment, at the end, and in the eyes of an audit."""
