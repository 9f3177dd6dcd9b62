r"""The audit of a fleet as a job for spark-submit; installed as ``logstore-spark-audit.py``.

    cp kafka_logstore-….whl kafka_logstore.zip      # Spark takes no .whl as a package
    spark-submit --master spark://… --py-files kafka_logstore.zip logstore-spark-audit.py \
        /shared/inventories --metadata kraft:/data/__cluster_metadata-0 --report /shared/audit

spark-submit gives standard output and standard error as one: have rows written to a file with ``--output``.
Arguments and exit codes are those of ``logstore audit``. The driver and all executors must see the folder of
``--report``, or reach the store of its URI, which begins with ``s3a://`` for example. The dependencies of the package,
DuckDB and Arrow above all, must be installed wherever an executor runs; ``--py-files`` brings only the package itself.
"""

from reconciler.cli import spark_audit

if __name__ == "__main__":
    spark_audit()
