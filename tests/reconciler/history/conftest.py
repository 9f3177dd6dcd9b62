"""A result of an audit, as the tests of the audit make it."""

from tests.reconciler.audit.conftest import make_result

__all__ = ["make_result"]
