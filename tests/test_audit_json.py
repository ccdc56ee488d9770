"""The JSON of an audit follows the schema that is shipped with it."""

import json
import re

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.report.audit_json import SCHEMA, json_schema

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def is_a(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def problems(value, schema, root, path="$"):
    """Check the part of JSON Schema that our schema uses, and nothing else: unknown words fail."""
    known = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "properties", "required"}
    known |= {"additionalProperties", "items", "enum", "const", "anyOf", "pattern"}
    assert set(schema) <= known, f"{path}: the schema uses {set(schema) - known}"
    if "$ref" in schema:
        yield from problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    if "anyOf" in schema and all(list(problems(value, s, root, path)) for s in schema["anyOf"]):
        yield f"{path}: {value!r} fits none of the choices"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(is_a(value, name) for name in names):
            yield f"{path}: {value!r} is not of type {names}"
            return
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match"
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{path}: {name} is missing"
        for name, entry in value.items():
            if name in schema.get("properties", {}):
                yield from problems(entry, schema["properties"][name], root, f"{path}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, entry in enumerate(value):
            yield from problems(entry, schema["items"], root, f"{path}[{i}]")


def check(result):
    schema = json_schema()
    assert list(problems(json.loads(result.to_json()), schema, schema)) == []


@pytest.fixture(scope="module")
def net():
    rng = np.random.default_rng(0)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((5, 2)), rng.standard_normal(5)), (rng.standard_normal((3, 5)), [0, 0, 0])]
    )


def test_a_whole_audit_follows_the_schema(net):
    X = np.random.default_rng(1).standard_normal((40, 2))
    result = audit(net, X, net(X).argmax(axis=1), budget=300.0, ignore=["BND-02", "BND-03"])
    kinds = {f["figure"]["type"] for f in json.loads(result.to_json())["findings"] if f["figure"]}
    assert {"PlaneMap", "StackedBars", "Histogram"} <= kinds
    check(result)


def test_a_comparison_and_the_unusual_follow_the_schema(net):
    huge = ReluNetwork.from_layers([(np.full((2, 2), 1e200), [0, 0]), (np.full((3, 2), 1e150), [0] * 3)])
    check(audit(net, before=2.0 * net, budget=10.0, only=["ARC", "LIP", "ACC"]))
    check(audit(huge, before=net, budget=5.0, only=["ARC", "LIP", "OUT"]))
    check(audit(net, budget=1e-9, box=([0, 1], [2, 3])))
    check(audit(net, budget=float("inf"), only="ARC"))


def test_the_schema_catches_what_is_wrong(net):
    schema = json_schema()
    document = json.loads(audit(net, only="ARC").to_json())
    wrong = [
        {**document, "schema": 1},
        {k: v for k, v in document.items() if k != "verdict"},
        {**document, "findings": [{**document["findings"][0], "status": "maybe"}]},
        {**document, "findings": [{**document["findings"][0], "number": {"value": "7"}}]},
        {**document, "box": 3},
        {**document, "seed": True},
    ]
    assert all(list(problems(given, schema, schema)) for given in wrong)
    assert schema["properties"]["schema"]["const"] == SCHEMA


def test_a_box_of_equal_sides_is_two_numbers(net):
    assert json.loads(audit(net, only="ARC").to_json())["box"] == {
        "name": "the reference box [-1, 1]^2",
        "lower": -1.0,
        "upper": 1.0,
    }
    box = json.loads(audit(net, box=([0, 1], [2, 2]), only="ARC").to_json())["box"]
    assert (box["lower"], box["upper"]) == ([0.0, 1.0], 2.0)
