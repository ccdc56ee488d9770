"""The map of the house: every file it names is there, and its layers are those of the layer test."""

import re
from pathlib import Path

from tests.test_layers import LAYERS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
TABLE = re.findall(r"^\| (?!layer|---)[\w ]+ \| (`[^|]*) \|", PAGE.split("## The way")[0], re.MULTILINE)


def test_every_file_it_names_is_there():
    named = {name for name in re.findall(r"`([\w./-]+)`", PAGE) if "/" in name or name.endswith(".py")}
    places = [ROOT / "src" / "pindown", ROOT]
    missing = {n for n in named if not any((place / n).exists() for place in places)} - {"tuning.py"}
    assert len(named) > 20 and not missing


def test_the_layers_are_those_of_the_test():
    rooms = [re.findall(r"`([\w]+?)(?:/|\.py)`", line) for line in TABLE]
    tested = [set(line.split()) for line in LAYERS]
    level = {room: i for i, line in enumerate(tested) for room in line}
    assert set(rooms[0]) <= tested[0]
    assert {room for line in rooms[1:] for room in line} == set().union(*tested[1:])
    order = [max(level[room] for room in line) for line in rooms]
    assert order == sorted(order)
