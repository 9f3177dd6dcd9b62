"""The verbs that ask a question of a whole fleet."""
