"""What must hold, one file each, as questions in SQL. Literal: to see what there is, read this."""

from __future__ import annotations

from typing import Final

from pipeline.properties import (
    a_replayed_envelope_acts_once,
    acknowledged_is_kept,
    answer_tells_the_truth,
    at_most_once,
    bytes_are_preserved,
    controller_node_belongs_to_its_owner,
    epochs_step_by_one,
    every_write_is_fenced,
    flows_are_conserved,
    image_is_monotonic,
    lines_are_conserved,
    log_is_complete,
    metrics_equal_events,
    no_unauthorised_effect,
    no_zombie_effect,
    not_controller_does_not_leak,
    only_controllers_write,
    principal_is_preserved,
    refused_leaves_no_trace,
    single_writer,
    the_scenario_has_teeth,
    unknown_is_resolved,
)
from pipeline.property import Property

PROPERTIES: Final[tuple[Property, ...]] = (
    single_writer.PROPERTY,
    every_write_is_fenced.PROPERTY,
    no_zombie_effect.PROPERTY,
    epochs_step_by_one.PROPERTY,
    controller_node_belongs_to_its_owner.PROPERTY,
    only_controllers_write.PROPERTY,
    acknowledged_is_kept.PROPERTY,
    refused_leaves_no_trace.PROPERTY,
    at_most_once.PROPERTY,
    unknown_is_resolved.PROPERTY,
    answer_tells_the_truth.PROPERTY,
    principal_is_preserved.PROPERTY,
    bytes_are_preserved.PROPERTY,
    not_controller_does_not_leak.PROPERTY,
    a_replayed_envelope_acts_once.PROPERTY,
    no_unauthorised_effect.PROPERTY,
    image_is_monotonic.PROPERTY,
    metrics_equal_events.PROPERTY,
    flows_are_conserved.PROPERTY,
    log_is_complete.PROPERTY,
    lines_are_conserved.PROPERTY,
    the_scenario_has_teeth.PROPERTY,
)
