"""DescribeLogDirs."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Topic

DIRECTORIES = [{"errorCode": 0, "logDir": path} for path in ("{logs}/a", "{logs}/b")]
CASES = (
    Case(
        "one topic",
        {"topics": [{"topic": "{topic}", "partitions": [0, 1, 9]}]},
        {
            "errorCode": 0,
            "results": [
                {
                    "logDir": "{logs}/a",
                    "topics": [
                        {
                            "name": "{topic}",
                            "partitions": [
                                {"partitionIndex": index, "isFutureKey": False} for index in (0, 1)
                            ],
                        }
                    ],
                },
                {"logDir": "{logs}/b", "topics": []},
            ],
        },
        topic=Topic(partitions=2, replicas=2),
    ),
    Case("empty request", {"topics": []}, {"results": DIRECTORIES}),
    Case(
        "unknown topic",
        {"topics": [{"topic": "none-{n}", "partitions": [0]}]},
        {"errorCode": 0, "results": DIRECTORIES},
    ),
)
