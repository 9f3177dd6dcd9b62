"""What verbs print: tables and explanations."""
