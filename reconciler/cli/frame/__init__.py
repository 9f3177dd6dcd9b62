"""What verbs share: options, inputs, output, exit codes, signals."""
