"""From activation patterns back to whole cells, along the branches of a walk that lead there.

A walk through all cells splits a cell by one unit after the other and goes on with both halves. Here
a half is dropped if no wanted pattern has it, so each cell comes out as the walk through the whole box
would have written it, with the same signs decided in the same way.
"""

from __future__ import annotations

from pindown.geometry._compiled import copy, entry, inner
from pindown.geometry._compiled.arrays import (
    CANDIDATE,
    FINISHED,
    FRAMES,
    LEVEL,
    N_CANDIDATES,
    NUMBERED,
    PAUSED,
)
from pindown.geometry._compiled.exact_residues import USED
from pindown.geometry._compiled.finished_cells import emit
from pindown.geometry._compiled.traversal import _descend, _split


@entry
def retrace(
    net,
    work,
    stack,
    halves,
    faces,
    store,
    hashes,
    deferred,
    counters,
    growth,
    certified,
    wanted,
    order,
    ranges,
    steps,
):
    """Work on the stack for at most ``steps`` cells, towards ``wanted`` patterns; return why it stopped.

    The patterns that may lie in frame k are ``wanted[order[ranges[k, 0] : ranges[k, 1]]]``. Patterns
    that no cell has end in a cell with another one, which the caller can tell.
    """
    for _ in range(steps):
        top = counters[FRAMES] - 1
        if top < 0:
            return FINISHED
        frame = stack.frames[top]
        if certified is not None:
            certified.state[USED] = frame[NUMBERED]
        if frame[N_CANDIDATES] > 0:
            last = stack.candidates[frame[CANDIDATE] + frame[N_CANDIDATES] - 1]
            label = net.starts[frame[LEVEL]] + last
            status = _split(net, work, stack, halves, faces, hashes, deferred, counters, certified)
            if status == FINISHED and counters[FRAMES] == top + 2:
                _share_out(stack, faces, counters, wanted, order, ranges, top, label)
        elif frame[LEVEL] < net.hidden - 1:
            status = _descend(net, work, stack, hashes, deferred, counters, growth, False, certified)
        else:
            status = emit(net, work, stack, faces, store, counters, growth, certified)
        if status != FINISHED:
            return status
    return PAUSED


@inner
def _share_out(stack, faces, counters, wanted, order, ranges, top, label):
    """Give the patterns of a split cell to its halves, and drop a half that gets none."""
    begin, end = ranges[top, 0], ranges[top, 1]
    middle = begin
    for k in range(begin, end):
        if not wanted[order[k], label]:
            order[k], order[middle] = order[middle], order[k]
            middle += 1
    ranges[top, 1] = ranges[top + 1, 0] = middle
    ranges[top + 1, 1] = end
    if middle == end:
        counters[FRAMES] = top + 1
    elif middle == begin:
        counters[FRAMES] = top + 1
        copy(ranges[top], ranges[top + 1])
        copy(stack.frames[top], stack.frames[top + 1])
        stack.keys[top] = stack.keys[top + 1]
        if faces is not None:
            copy(faces.labels[top], faces.labels[top + 1])
