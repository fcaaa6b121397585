"""Runs in a CI job beside the service `bridgehead`: it fails over and asks for the verdict."""

import json
import os
import urllib.request

from confluent_kafka.admin import AdminClient, NewTopic

CONTROL = os.environ.get("BRIDGEHEAD_CONTROL_URL", "http://localhost:9091")
SERVERS = os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092,localhost:9093,localhost:9094")


def post(path, **fields):
    """Execute an operation of the control API; return the response."""
    headers = {"Authorization": f"Bearer {os.environ['BRIDGEHEAD_CONTROL_TOKEN']}"}
    request = urllib.request.Request(CONTROL + path, json.dumps(fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as response:
        return json.load(response)


def test_topic_is_created_after_the_controller_died():
    killed = post("/controller/kill")["id"]
    post("/controller/wait", other_than=killed, timeout_s=60)
    admin = AdminClient({"bootstrap.servers": SERVERS})
    admin.create_topics([NewTopic("orders", 3, 2)])["orders"].result()
    post("/evidence/seal")
    assert post("/judge")["verdict"] == "PASS"
