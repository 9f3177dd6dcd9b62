"""Man pages and a book, made from the commands, the pages of ``logstore help`` and the docstrings of the doors.

``tools/man`` and ``tools/book`` write them.
"""
