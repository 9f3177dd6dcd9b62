"""What a cluster wants on which broker, whose word that is, how complete and how old."""
