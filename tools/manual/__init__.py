"""Man pages, made from the commands and from the pages of ``logstore help``; ``tools/man`` writes them."""
