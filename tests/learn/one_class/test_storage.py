import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file
from sklearn.neighbors import NearestNeighbors

from pindown.errors import ModelFileError
from pindown.learn.one_class import LocalMaximaDetector
from pindown.learn.one_class import _storage as storage

QUICK = {"max_epochs": 2, "n_estimators": 2, "random_state": 0}
X = np.random.default_rng(0).normal(size=(60, 3))
IMAGES = np.random.default_rng(0).random(size=(30, 9, 8))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    LocalMaximaDetector(**QUICK).fit(X).save(path)
    return path


@pytest.mark.parametrize("data", [X, IMAGES])
@pytest.mark.parametrize("preset", ["auto", "paper"])
def test_what_is_read_scores_as_what_was_written(data, preset, tmp_path):
    model = LocalMaximaDetector(preset, hidden=4, contamination=0.1, **QUICK).fit(data)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = LocalMaximaDetector.load(path)
    assert np.array_equal(model.score_samples(data), again.score_samples(data))
    assert np.array_equal(model.quality(data), again.quality(data))
    assert np.array_equal(model.predict(data), again.predict(data))
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_


def test_reading_then_learning_goes_on_from_the_density(saved):
    again = LocalMaximaDetector.load(saved)
    assert np.isfinite(again.partial_fit(X + 1).score_samples(X)).all()


def test_other_endings_are_refused(saved, tmp_path):
    with pytest.raises(ValueError, match="safetensors"):
        LocalMaximaDetector.load(saved).save(tmp_path / "model.pkl")


def test_garbage_is_refused_in_one_sentence(saved, tmp_path):
    data = saved.read_bytes()
    path = tmp_path / "bad.safetensors"
    rng = np.random.default_rng(0)
    for bad in (b"", b"hello", data[: len(data) // 2], b"\xff" * 100, rng.bytes(5000)):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=r"\w+") as caught:
            LocalMaximaDetector.load(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="no such file"):
        LocalMaximaDetector.load(tmp_path / "missing.safetensors")


def write(tensors, path, facts):
    """Write a file as one that means it would: with a checksum that fits."""
    metadata = {storage.MARK: json.dumps(facts), storage.CHECKSUM: 64 * "0"}
    path.write_bytes(storage.sealed(save(tensors, metadata=metadata)))


def _facts(path):
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["pindown-detector"])


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f["plan"]["membership"].update(inputs=60_000, hidden=[60_000, 60_000]),
        lambda f: f["plan"]["membership"].update(kind="__import__"),
        lambda f: f["plan"].update(n_members=10**9),
        lambda f: f.update(n_features=10**12),
        lambda f: f.update(offset="nan"),
        lambda f: f.update(density=[1.0]),
        lambda f: f.update(image_shape=[3, 3, 3]),
        lambda f: f.update(format=99),
        lambda f: f["parameters"].update(evil=1),
        lambda f: f.pop("plan"),
        lambda f: f.update(mixture=None),
        lambda f: f.update(history=[3]),
        lambda f: f["plan"].update(membership="perceptron"),
        lambda f: f["plan"]["comparator"].update(bound=[1]),
        lambda f: f["plan"]["comparator"].update(hidden=[1] * 10_000),
        lambda f: f["plan"]["membership"].update(inputs=10**400),
        lambda f: f["density"].__setitem__(0, 0.0),  # a unit of distance
        lambda f: f["density"].__setitem__(0, 1e308),
        lambda f: f["density"].__setitem__(2, -1.0),  # a weight
        lambda f: f["density"].__setitem__(2, 1e308),
        lambda f: f["density"].__setitem__(slice(2, 4), [100.0, 100.0]),
        lambda f: f.update(density=f["density"][:3]),  # as format 1 has it
        lambda f: f.update(format=1),
        lambda f: f.update(format=True),
        lambda f: f.update(format="2"),
        lambda f: f.update(beginnings=[1]),
        lambda f: f.update(beginnings=["a", 2]),
        lambda f: f.update(beginnings=[-1, 2**70]),
        lambda f: f["density"].__setitem__(5, -1.0),  # the slope of the calibration
        lambda f: f["density"].pop(),
        lambda f: f.update(density=3.0),
        lambda f: f["mixture"].__setitem__(1, -1.0),  # the order of all rows turned round
        lambda f: f["mixture"].__setitem__(4, -0.25),
        lambda f: f.update(feature_names=["a", "b", "a"]),
        lambda f: f.update(feature_names=["a", None, 3]),
        lambda f: f.update(held_out_losses=[1.0, 2.0]),
        lambda f: f.update(held_out_losses="none"),
        lambda f: f["parameters"].update(contamination={"a": 1}),
    ],
)
def test_changed_texts_are_refused(saved, tmp_path, change):
    facts = _facts(saved)
    change(facts)
    path = tmp_path / "changed.safetensors"
    write(load_file(saved), path, facts)
    with pytest.raises(ModelFileError) as caught:
        LocalMaximaDetector.load(path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_as_many_networks_c_as_h(saved, tmp_path):
    tensors = {key: value for key, value in load_file(saved).items() if not key.startswith("h.1.")}
    path = tmp_path / "fewer.safetensors"
    write(tensors, path, _facts(saved))
    with pytest.raises(ModelFileError, match="as many networks"):
        LocalMaximaDetector.load(path)


def test_files_of_earlier_versions_are_read(saved, tmp_path):
    facts = _facts(saved) | {"format": 1}
    facts.pop("held_out_losses")
    facts.pop("beginnings")
    facts["density"] = [0.5, -1.0, 2.0]  # the unit of distance, the edge, the slope: five neighbours
    path = tmp_path / "earlier.safetensors"
    save_file(load_file(saved), path, metadata={"pindown-detector": json.dumps(facts)})
    with pytest.warns(UserWarning, match="without a checksum"):
        model = LocalMaximaDetector.load(path)
    assert model.report().held_out_losses is None
    fresh = np.random.default_rng(1).normal(size=(20, 3))
    points = model.scaling_.scaled(fresh)
    known = NearestNeighbors(n_neighbors=5).fit(model.density_.points.astype(float))
    distances = known.kneighbors(points)[0].mean(axis=1)
    expected = (-np.log(distances / 0.5) + 1.0) * 2.0
    assert model.density_.log_odds(points) == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(model.partial_fit(X).score_samples(X)).all()


def test_an_image_of_a_trillion_pixels_is_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "model.safetensors"
    LocalMaximaDetector(**QUICK).fit(IMAGES).save(path)
    facts = _facts(path) | {"n_features": 10**10, "image_shape": [10**5, 10**5, 1]}
    write(load_file(path), path, facts)
    with pytest.raises(ModelFileError, match="does not hold"):
        LocalMaximaDetector.load(path)


def test_parameters_come_back(tmp_path):
    given = {
        "ingredients": {"density", "negatives", "comparator"},
        "n_estimators": np.int64(1),
        "image_shape": (9, 8),
        "contamination": np.float64(0.25),
        "hidden": (4, 5),
    }
    model = LocalMaximaDetector(max_epochs=1, **given).fit(IMAGES.reshape(30, -1))
    model.save(tmp_path / "model.safetensors")
    again = LocalMaximaDetector.load(tmp_path / "model.safetensors")
    assert set(again.ingredients) == given["ingredients"] and list(again.hidden) == [4, 5]
    assert (again.n_estimators, again.image_shape, again.contamination) == (1, (9, 8), 0.25)


def test_changed_tensors_are_refused(saved, tmp_path):
    tensors, facts = load_file(saved), _facts(saved)
    path = tmp_path / "changed.safetensors"
    name = next(key for key in tensors if key.startswith("c.0"))
    for value in (None, np.zeros((1, 1), np.float32), np.full_like(tensors[name], np.nan)):
        changed = dict(tensors) if value is None else {**tensors, name: value}
        if value is None:
            changed.pop(name)
        write(changed, path, facts)
        with pytest.raises(ValueError, match=r"\w+"):
            LocalMaximaDetector.load(path)
    write({**tensors, "more": np.zeros(2, np.float32)}, path, facts)
    with pytest.raises(ValueError, match="belongs to nothing"):
        LocalMaximaDetector.load(path)


def test_a_file_of_the_format_before_scores_the_same_and_says_that_it_has_no_checksum(saved, tmp_path):
    path = tmp_path / "earlier.safetensors"
    save_file(load_file(saved), path, {storage.MARK: json.dumps(_facts(saved) | {"format": 2})})
    with pytest.warns(UserWarning, match="without a checksum"):
        earlier = LocalMaximaDetector.load(path)
    now = LocalMaximaDetector.load(saved)
    assert np.array_equal(earlier.score_samples(X), now.score_samples(X))


def test_losses_of_the_format_before_are_read_under_their_earlier_name(saved, tmp_path):
    facts = _facts(saved) | {"format": 3}
    facts["prices"] = facts.pop("held_out_losses")
    path = tmp_path / "earlier.safetensors"
    write(load_file(saved), path, facts)
    earlier, now = LocalMaximaDetector.load(path), LocalMaximaDetector.load(saved)
    assert earlier.held_out_losses_ == now.held_out_losses_ is not None
    assert np.array_equal(earlier.score_samples(X), now.score_samples(X))
    facts["prices"] = [1.0, 2.0]
    write(load_file(saved), path, facts)
    with pytest.raises(ModelFileError):
        LocalMaximaDetector.load(path)


def mutated(data, rng):
    """Change a file as accidents do: single bits and bytes, digits, pieces lost, doubled or swapped."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        # Half of the accidents in the header, which is small and matters most.
        header = 8 + int.from_bytes(data[:8], "little")
        i = int(rng.integers(min(header, len(changed)) if rng.random() < 0.5 else len(changed)))
        length = int(rng.integers(1, 9))
        kind = rng.integers(6)
        if kind == 0:
            changed[i] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed[i] = int(rng.integers(256))
        elif kind == 2:
            changed[i] = ord("0123456789"[rng.integers(10)])
        elif kind == 3:
            del changed[i : i + length]
        elif kind == 4:
            changed[i:i] = changed[i : i + length]
        else:
            changed[i : i + length] = changed[i : i + length][::-1]
    return bytes(changed)


def test_no_changed_file_is_read(saved, tmp_path):
    """Not one of many accidents goes unnoticed."""
    data, rng = saved.read_bytes(), np.random.default_rng(5)
    path, refused = tmp_path / "changed.safetensors", 0
    for _ in range(400):
        changed = mutated(data, rng)
        if changed == data or not changed:
            continue
        path.write_bytes(changed)
        with pytest.raises(ModelFileError) as caught:
            LocalMaximaDetector.load(path)
        refused += 1
        assert "\n" not in str(caught.value)
    assert refused > 350
