"""Entry points round the three packages: set-up, tests, the demo with its sample fleet, benchmarks,
real Kafka brokers (``real_broker``), and histories of simulated clusters by the thousand (``soak_run``).

Nothing here is installed with ``kafka-logstore``, and nothing in the three packages imports it.
"""
