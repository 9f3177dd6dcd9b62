"""Control requests and their answers as Kafka's bytes.

::

    tables      the messages as data: which field stands where, in which versions, under which name
    reading     from bytes, by a table: every length is checked before anything is made of it
    writing     to bytes, and to the JSON of Kafka's own tools, by the same table
    messages    bytes <-> the types of ``reconciler.protocol.requests`` and ``reconciler.protocol.responses``
    header      what stands before a request or an answer on a connection, and says which it is

All shipped versions are here (LeaderAndIsr 0 to 7, StopReplica 0 to 4) and, as version ``kip-516``, the forms that the
proposal draws: they are flexible, its tagged fields have tag 0, and what it does not draw is not there.
Source: FACTS §5, §7.3; KIP516-4, KIP516-7.
"""
