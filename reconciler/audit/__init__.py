"""The audit of one machine or of a whole fleet: the case table run by an engine that joins millions of rows.

Two engines share everything but the join itself: ``joined`` (the joined row as SQL that both understand), ``render``
(the case table as one CASE expression), ``findings`` and ``fleet`` (what is asked of the answer) and ``summary`` (what
comes back). ``embedded`` is DuckDB, without a JVM, and ten times Spark on one machine; the ``spark_*`` modules are for
trees and inventories that lie on many. ``result`` is what both give; ``report_json`` and ``report_html`` are what
people get.
"""
