"""Prints all events of a folder of Common Trace Format as lines of JSON, as babeltrace2 reads it, what was lost, and the environment."""

import json
import math
import sys

import bt2


def plain(field):
    """The value of a field as JSON has it."""
    if isinstance(field, bt2._StringFieldConst):
        return str(field)
    if isinstance(field, bt2._BoolFieldConst):
        return bool(field)
    if isinstance(field, bt2._RealFieldConst):
        number = float(field)
        if math.isfinite(number):
            return {"float": number}
        return {"float": "NaN" if math.isnan(number) else "inf" if number > 0 else "-inf"}
    if isinstance(field, bt2._IntegerFieldConst):
        is_hex = field.cls.preferred_display_base == 16
        return f"{int(field):#x}" if is_hex else int(field)
    if isinstance(field, bt2._ArrayFieldConst):
        return [plain(one) for one in field]
    return {name: plain(one) for name, one in field.items()}


for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is bt2._DiscardedEventsMessageConst:
        print(json.dumps({"lost": message.count}))
    if type(message) is bt2._StreamBeginningMessageConst:
        environment = message.stream.trace.environment
        print(json.dumps({"environment": {name: str(value) for name, value in environment.items()}}))
    if type(message) is not bt2._EventMessageConst:
        continue
    event = message.event
    context = plain(event.common_context_field)
    packet = plain(event.packet.context_field)
    clock = message.default_clock_snapshot
    print(
        json.dumps(
            {
                "event": event.name,
                "time_ns": clock.value,
                "wall_ns": clock.ns_from_origin,
                "cpu": packet.get("cpu_id"),
                "pid": context["pid"],
                "tid": context["tid"],
                "comm": context["comm"],
                "fields": plain(event.payload_field),
            }
        )
    )
