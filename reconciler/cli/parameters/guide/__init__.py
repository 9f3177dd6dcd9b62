"""The parameters of the verbs that explain the program."""
