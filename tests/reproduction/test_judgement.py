"""A rule speaks only where the run has what it takes: seeds, size, data, and seeds that agree."""

import dataclasses

import pytest

from pindown_reproduction import EXPERIMENTS, Experiment, Outcome, Power, judge, reproduce
from pindown_reproduction.experiment import SCALES, SEED_STRIDE, SourceData
from pindown_reproduction.judgement import agreement, remedy
from pindown_reproduction.ledger import read_entry
from pindown_reproduction.not_run import DECLARED

HOUR = 3_600.0


def above_zero(results):
    good = all(found["x"] > 0 for _, found in results)
    rows = tuple((cell["seed"], found["x"]) for cell, found in results)
    return Outcome("reproduced" if good else "not reproduced", "Looked.", ("seed", "x"), rows)


def made(power, values=(1.0, 1.0, 1.0), data=None):
    return Experiment(
        id="made-up", title="Made up", source="Phuong 2021, Table 9", published="x > 0", rule="All "
        "above zero.",
        settings={"quick": {"n": len(values)}, "decisive": {"n": 5}},
        cells=lambda settings: [{"seed": s, "epochs": 3} for s in range(settings["n"])],
        run=lambda cell: {"x": values[cell["seed"] % SEED_STRIDE], "data": "digits"},
        compare=above_zero, power=power, data=data,
    )  # fmt: skip


def judged(power, values, data=None):
    experiment = made(power, values, data)
    return judge(experiment, [(cell, experiment.run(cell)) for cell in experiment.cells_of("quick")])


def test_with_all_it_takes_the_rule_speaks():
    assert judged(Power(seeds=3), (1.0, 1.0, 1.0)).verdict == "reproduced"
    assert judged(Power(seeds=3), (-1.0, -1.0, -1.0)) == Outcome(
        "not reproduced", "Looked.", ("seed", "x"), ((0, -1.0), (1, -1.0), (2, -1.0))
    )


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_too_few_seeds_decide_nothing(x):
    outcome = judged(Power(seeds=4), (x, x, x))
    assert outcome.verdict == "underpowered" and "3 seeds where 4 are needed" in outcome.words
    said = "reproduced" if x > 0 else "not reproduced"
    assert f"Underpowered ({said} by the rule alone)" in outcome.words


def test_a_small_run_may_see_the_effect_but_not_deny_it():
    power = Power(seeds=3, least={"epochs": 15})
    assert judged(power, (1.0, 1.0, 1.0)).verdict == "reproduced"
    outcome = judged(power, (-1.0, -1.0, -1.0))
    assert outcome.verdict == "underpowered" and "epochs 3 where 15 are needed" in outcome.words


def test_other_data_do_not_refute_unless_they_are_of_the_same_kind():
    no, yes = (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)
    foreign, akin = SourceData("MNIST", ("mnist",)), SourceData("MNIST", ("mnist",), akin=("digits",))
    assert judged(Power(), no, foreign).verdict == "underpowered"
    assert "digits in place of MNIST, which cannot refute it" in judged(Power(), no, foreign).words
    assert judged(Power(), no, akin).verdict == "not reproduced" and akin.stand_in(
        [({}, {"data": "digits"})]
    )
    assert judged(Power(), yes, foreign).verdict == "reproduced"


def test_seeds_that_disagree_decide_nothing():
    """One of three fails: draws without it, 8 of 27, would say the opposite."""
    outcome = judged(Power(seeds=3), (1.0, -1.0, 1.0))
    assert outcome.verdict == "underpowered" and "drawn again from the same seeds" in outcome.words
    experiment = made(Power(seeds=3), (1.0, -1.0, 1.0))
    results = [(cell, experiment.run(cell)) for cell in experiment.cells_of("quick")]
    assert agreement(experiment, above_zero(results), results) == pytest.approx(1 - 8 / 27, abs=0.15)
    assert (
        agreement(dataclasses.replace(experiment, power=Power(seeds=0)), above_zero(results), results)
        == 1.0
    )


def test_what_else_is_missing_keeps_a_no_back():
    power = Power(seeds=3, unfit=lambda results: ["no step size was tuned"])
    assert judged(power, (1.0, 1.0, 1.0)).verdict == "reproduced"
    assert "no step size was tuned" in judged(power, (-1.0, -1.0, -1.0)).words


def test_what_would_decide_is_said():
    small = made(Power(seeds=5))
    assert small.decides_at() == "decisive"
    assert remedy(small, "quick") == "`pindown reproduce made-up --scale decisive`"
    again = "more seeds: `pindown reproduce made-up --scale decisive --seed 1`"
    assert remedy(small, "decisive") == again
    assert remedy(made(Power(seeds=9)), "quick") == "no scale here"
    assert "multi-exit-times-gpu" in remedy(
        dataclasses.replace(made(Power(seeds=9)), id="multi-exit-times"), "quick"
    )


def test_another_seed_shares_no_draw_and_has_to_agree(tmp_path):
    experiment = made(Power(seeds=3))
    seeds = [{cell["seed"] for cell in experiment.cells_of("quick", seed)} for seed in (0, 1, 2)]
    assert (
        not seeds[0] & seeds[1]
        and not seeds[1] & seeds[2]
        and experiment.cells_of("quick", 0)[0]["seed"] == 0
    )
    for seed in (0, 1):
        assert reproduce(experiment, out=tmp_path, seed=seed).outcome.verdict == "reproduced"
    entry = read_entry(tmp_path, experiment)
    assert (entry.status, entry.seeds, entry.draws, entry.scale) == ("reproduced", (0, 1), 3, "quick")
    worse = made(Power(seeds=3), (-1.0, -1.0, -1.0))
    reproduce(worse, out=tmp_path, seed=2)
    entry = read_entry(tmp_path, experiment)
    assert entry.status == "underpowered" and "2 reproduced, 1 not reproduced" in entry.words
    with pytest.raises(ValueError, match="from 0 on"):
        reproduce(experiment, out=tmp_path, seed=-1)


def test_the_largest_scale_counts_and_todays_rule(tmp_path):
    experiment = made(Power(seeds=3), (-1.0,) * 5)
    for scale in ("decisive", "quick"):
        reproduce(experiment, out=tmp_path, scale=scale)
    entry = read_entry(tmp_path, experiment)
    assert (entry.scale, entry.draws, entry.status) == ("decisive", 5, "not reproduced")
    assert len(entry.date) == 10 and entry.seconds >= 0
    stricter = dataclasses.replace(experiment, power=Power(seeds=6))
    assert read_entry(tmp_path, stricter).status == "underpowered"


# ------------------------------------------------------------------------------ what is declared


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.id)
def test_every_experiment_says_what_it_takes_and_where_it_can_be_refuted(experiment):
    if experiment.rule.startswith("None"):
        assert experiment.decides_at() == ""
        return
    assert experiment.power.why.endswith(".") and set(experiment.settings) <= set(SCALES)
    for key in experiment.power.least:
        assert any(key in cell for cell in experiment.cells_of("quick")), key
    reached = experiment.decides_at()
    declared = any(experiment.id in one.instead.split(", ") for one in DECLARED.values())
    assert reached in ("quick", "decisive") or declared
    if reached == "decisive":
        assert 0 < experiment.seconds["decisive"] <= 2 * HOUR  # an hour of two cores


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.id)
def test_every_experiment_can_be_drawn_anew(experiment):
    for scale in experiment.settings:
        first, other = (experiment.cells_of(scale, seed) for seed in (0, 1))
        assert len(first) == len(other) and all(cell["seed"] >= SEED_STRIDE for cell in other)
        assert [{**cell, "seed": 0} for cell in first] == [{**cell, "seed": 0} for cell in other]


def test_all_decisive_runs_fit_into_fifteen_hours():
    times = [e.seconds.get("decisive", 0.0) for e in EXPERIMENTS.values()]
    assert 0 < sum(times) <= 15 * HOUR


@pytest.mark.parametrize(
    "name", ["gate-horizons", "flat-minima", "double-descent", "distillation-geometry"]
)
def test_draws_inside_of_cells_change_with_the_seed(name):
    experiment = EXPERIMENTS[name]
    same, other = (experiment.cells_of("quick", seed)[0] for seed in (0, 1))
    small = {
        "runs": 3,
        "problems": 2,
        "repetitions": 2,
        "repeats": 2,
        "n_steps": 50,
        "step": 0.15,
        "jitter": 0.4,
    }
    same, other = ({**cell, **{k: v for k, v in small.items() if k in cell}} for cell in (same, other))
    assert experiment.run(same) == experiment.run(same) != experiment.run(other)
