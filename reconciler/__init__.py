"""Desired against observed: what a cluster wants on its brokers' disks, held against what lies there.

A metadata source (``sources``) gives a :class:`~reconciler.desired.DesiredState`; a scan (:mod:`logstore.scan`) gives
rows. ``scope`` says which metadata may judge which broker, ``verdicts`` holds the case table, the only place that
decides, and ``compare`` walks it in Python. ``audit`` does the same comparison over whole fleets, in DuckDB on one
machine or in Spark on many, ``advice`` says what each verdict means for the one who has to act, and ``cli`` is the
command ``logstore``.

Nothing here changes a disk.
"""
