"""A result of an audit, as the tests of the audit make it."""

from tests.reconciler.audit.conftest import fleet_finding, make_result

__all__ = ["fleet_finding", "make_result"]
