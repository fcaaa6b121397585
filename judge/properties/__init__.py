"""Every property that the judges check, and the statements that no property covers.

A property is one module of `judge/properties`. It has the statement (`SPEC`) and two checks that
share only data: one in Python (`check`), for the judge, and one in SQL (`SQL`), for the pipeline.
Both checks must agree on the verdict, on the number of rows, and on the key and the text of every
violation.

The columns of the table of properties:

- *statement*: what must hold.
- *witnesses*: the kinds of evidence that the property needs. `commits` are ZooKeeper's
  transactions. `events` are the events of nodes and of the harness. `clients` are the histories
  that workloads record of their clients' operations.
- *rows*: the things that are judged, such as transactions.
- *key of a violation*: the text that identifies the row of a violation. `<node>/<boot>/<seq>`
  identifies an event, and `<broker>/<incarnation>/<sequence>` a request with all its resends.
- *a gap blocks*: a gap is evidence that is known to be missing. The column has the verdicts (PASS,
  FAIL) that a gap in one of the property's witnesses prevents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from judge.history import History
from judge.properties import (
    acknowledged_record_is_kept,
    acknowledged_write_is_kept,
    at_most_once,
    bytes_are_preserved,
    committed_offset_is_kept,
    controller_acts_in_its_term,
    controller_znode_belongs_to_owner,
    elections_have_causes,
    envelope_errors_are_mapped,
    epochs_step_by_one,
    error_code_matches_state,
    every_element_gets_a_result,
    every_write_is_fenced,
    executed_envelope_was_sent,
    faults_take_effect,
    flows_are_conserved,
    image_is_committed,
    image_is_monotonic,
    lines_are_conserved,
    log_is_complete,
    metrics_equal_events,
    migrated_write_is_kept,
    no_request_on_expired_credential,
    no_unauthorized_effect,
    no_zombie_effect,
    not_controller_is_not_relayed,
    only_controllers_write,
    principal_is_preserved,
    reads_are_monotonic,
    rejected_write_has_no_effect,
    replayed_envelope_acts_once,
    reported_commit_exists,
    resends_end_at_deadline,
    response_is_sent_in_time,
    responses_keep_their_order,
    single_writer,
    superseded_controller_resigns,
    topic_id_is_used_once,
    unknown_outcome_is_resolved,
    validate_only_has_no_effect,
)
from judge.property import PropertySpec, Violation


class Property(Protocol):
    """What the module of a property has."""

    @property
    def SPEC(self) -> PropertySpec:
        """What must hold, and the evidence for it."""

    @property
    def INPUTS(self) -> Sequence[str]:
        """The tables that the SQL reads. In the SQL, the table `gold/responses` is `responses`."""

    @property
    def SQL(self) -> str:
        """A query that returns one row for each row judged.

        Its columns are `run`, `key` (null where the property holds), `rows` (an array) and
        `sentence`. A query may also return violations that do not count as rows judged. Then
        `JUDGED` in the module names one more column, which is 0 for these violations and 1 for all
        other rows.
        """

    def check(self, history: History) -> Iterator[Violation | None]:
        """Yield one item for each row judged: a violation, or None if the property holds."""


PROPERTIES: Final[tuple[Property, ...]] = (
    single_writer,
    every_write_is_fenced,
    no_zombie_effect,
    epochs_step_by_one,
    controller_znode_belongs_to_owner,
    only_controllers_write,
    controller_acts_in_its_term,
    acknowledged_write_is_kept,
    rejected_write_has_no_effect,
    at_most_once,
    unknown_outcome_is_resolved,
    error_code_matches_state,
    acknowledged_record_is_kept,
    every_element_gets_a_result,
    validate_only_has_no_effect,
    topic_id_is_used_once,
    committed_offset_is_kept,
    migrated_write_is_kept,
    principal_is_preserved,
    bytes_are_preserved,
    responses_keep_their_order,
    not_controller_is_not_relayed,
    envelope_errors_are_mapped,
    replayed_envelope_acts_once,
    resends_end_at_deadline,
    executed_envelope_was_sent,
    no_unauthorized_effect,
    no_request_on_expired_credential,
    image_is_monotonic,
    reads_are_monotonic,
    image_is_committed,
    metrics_equal_events,
    flows_are_conserved,
    log_is_complete,
    reported_commit_exists,
    lines_are_conserved,
    superseded_controller_resigns,
    response_is_sent_in_time,
    elections_have_causes,
    faults_take_effect,
)
PROPERTY_SPECS: Final = tuple(property_.SPEC for property_ in PROPERTIES)
