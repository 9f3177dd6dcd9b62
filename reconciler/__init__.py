"""Desired against observed: what a cluster wants on its brokers' disks, held against what lies there.

A metadata source (``sources``) gives a :class:`~reconciler.desired.desired.DesiredState`; a scan
(:mod:`logstore.scan.scan`) gives rows. ``scope`` says which metadata may judge which broker, ``verdicts`` holds the
case table, the only place that decides, and ``compare`` walks it in Python. ``audit`` does the same comparison over
whole fleets, in DuckDB on one machine or in Spark on many, ``advice`` says what each verdict means for the one who has
to act, and ``cli`` is the command ``logstore``.

What changes a disk does it through ``logstore``: ``broker`` handles LeaderAndIsr and StopReplica requests for a
simulator that embeds it (``requests``, ``responses``, ``wire``); ``make_plan`` and ``apply`` are for an operator who
reviews first (``policy`` holds the gates); ``propose_repair`` plans what ``logstore.repair.repair`` carries out. An
operator sends one request by hand through ``request_file`` and ``request_gates``, and ``znode_migration`` and
``znode_writing`` give topics in ZooKeeper the IDs that they lack. ``preflight`` says what a real broker would do at its
next start, and ``verdict_stream`` tells each verdict that changes. ``simulator`` has a whole cluster in one process.
"""
