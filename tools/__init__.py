"""Entry points round the three packages: set-up, tests, the demo with its sample fleet, and benchmarks.

``real_broker`` starts real Kafka brokers, ``soak_run`` plays histories of simulated clusters by the thousand. Nothing
here is installed with ``kafka-logstore``, and nothing in the three packages imports it.
"""
