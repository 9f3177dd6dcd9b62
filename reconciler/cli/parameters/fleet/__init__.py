"""The parameters of the verbs that ask a question of a whole fleet."""
