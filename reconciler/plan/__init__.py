"""Verdicts turned into reviewed actions, held to gates, and carried out."""
