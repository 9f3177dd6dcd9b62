"""What the verbs that explain the program do: its pages, for people who read them."""
