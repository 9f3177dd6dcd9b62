"""One broker's log dirs as one: create, find, fence, stage, restore, move, purge, recover."""
