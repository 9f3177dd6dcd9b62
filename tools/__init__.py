"""Entry points round the three packages: set-up, tests, the demo with its sample fleet, and benchmarks.

Nothing here is installed with ``kafka-logstore``, and nothing in the three packages imports it.
"""
