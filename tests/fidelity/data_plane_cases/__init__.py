"""Requests for records and groups that `tests.fidelity.record_data_plane` sends to a live Kafka."""
