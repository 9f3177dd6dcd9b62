"""Entry points round the three packages: set-up, tests, the demo with its sample fleet, and benchmarks.

``real_broker`` starts real Kafka brokers, ``soak_run`` plays histories of simulated clusters by the thousand, and
``mutate_run`` measures whether soak and tests would notice a mistake. Nothing here is installed with
``kafka-logstore``, and nothing in the three packages imports it.
"""
