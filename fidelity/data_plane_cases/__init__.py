"""Requests for records and groups that `fidelity.record_data_plane` sends to a live Kafka."""
