"""The audit of one machine or of a whole fleet: the case table run by an engine that joins millions of rows.

Two engines share everything but the join itself: ``joined`` (the joined row as SQL that both understand), ``render``
(the case table as one CASE expression), ``findings`` and ``fleet`` (what is asked of the answer) and ``summary`` (what
comes back). ``embedded`` is DuckDB, without a JVM; the ``spark_*`` modules are for what lies on many machines: trees
are judged by the tasks that list them, each with that same join in DuckDB (``duckdb_join``), and inventories by a join
in Spark. ``result`` is what both give; ``report_json`` and ``report_html`` are what people get.
"""
