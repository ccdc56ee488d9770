"""Reading torch modules: every rule against torch itself, in float64."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune

from pindown import Model, ReluNetwork
from pindown.errors import UnsupportedModelError
from pindown.io._torch import ops as torch_ops
from pindown.model.operations.dense import Scale
from tests.io.torch_checks import check_agreement, check_counted, check_model


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_sequential_mlp_is_taken_over_number_for_number():
    module = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 2))
    net = ReluNetwork.from_torch(module)
    assert net.widths == (4, 7, 5, 2)
    for layer, (W, b) in zip([module[0], module[2], module[4]], net.layers, strict=True):
        np.testing.assert_array_equal(W, layer.weight.detach().double().numpy())
        np.testing.assert_array_equal(b, layer.bias.detach().double().numpy())


@pytest.mark.parametrize("seed", range(12))
def test_random_convolutions(seed):
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    groups = int(rng.integers(1, 3))
    conv = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dims]
    options = {
        "kernel_size": tuple(int(k) for k in rng.integers(1, 4, dims)),
        "dilation": tuple(int(k) for k in rng.integers(1, 3, dims)),
        "groups": groups,
        "bias": bool(rng.integers(2)),
    }
    if rng.random() < 0.3:
        options["padding"] = "same"
    else:
        options["padding"] = tuple(int(k) for k in rng.integers(0, 3, dims))
        options["stride"] = tuple(int(k) for k in rng.integers(1, 3, dims))
    check_agreement(
        nn.Sequential(conv(2 * groups, 4, **options), nn.ReLU()), (2 * groups, *(7, 6, 5)[:dims]), n=5
    )


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, None, 0), (3, 2, 1), ((2, 3), (1, 2), (1, 0)), (3, 1, 1)]
)
@pytest.mark.parametrize("kind", ["max", "average", "average without padding"])
def test_pooling(kind, kernel, stride, padding, ceil_mode):
    if kind == "max":
        pool = nn.MaxPool2d(kernel, stride, padding, ceil_mode=ceil_mode)
    else:
        pool = nn.AvgPool2d(kernel, stride, padding, ceil_mode, count_include_pad=kind == "average")
    check_agreement(nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), pool), (1, 8, 9), n=10)


def test_two_by_two_max_pooling_costs_three_gates_a_window():
    net = check_agreement(nn.MaxPool2d(2), (1, 4, 4))
    gates = sum(int((abs(W).sum(axis=1) > 1).sum()) for W, _ in net.layers[:-1])
    assert net.depth == 3
    assert gates == 4 * 3  # the other ReLUs hand values through, one weight each


class Residual(nn.Module):
    def __init__(self, inplace=False):
        super().__init__()
        self.stem, self.a, self.b = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3, padding=1), nn.Linear(64, 3)
        self.norm, self.relu = nn.BatchNorm2d(4), nn.ReLU(inplace=inplace)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.a(self.relu(x)))
        y = F.relu(y + x)
        return self.b(torch.flatten(y, 1))


@pytest.mark.parametrize("inplace", [False, True])
def test_residual_connections_also_when_the_relu_works_in_place(inplace):
    # In place, the shortcut x is what the ReLU left of it: another function.
    check_agreement(Residual(inplace), (2, 6, 6))


def test_changing_a_view_whose_base_is_used_again_is_refused():
    class Trap(nn.Module):
        def forward(self, x):
            y = x * 2.0
            y.view(-1, 2).relu_()
            return y

    with pytest.raises(UnsupportedModelError, match="in place"):
        ReluNetwork.from_torch(Trap(), input_shape=(4,))


def test_input_skip_to_the_output():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)
            )

        def forward(self, x):
            return x + self.body(x)

    net = check_agreement(Skip(), (3,))
    assert net.hidden_widths == (8 + 6, 8 + 6)  # x = relu(x) - relu(-x): two units for each input


class Operations(nn.Module):
    """One forward with most of the small operations in it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.randn(3, 1, 1))
        self.weight = nn.Parameter(torch.randn(12, 5))
        self.prelu, self.leaky = nn.PReLU(5, init=0.3), nn.LeakyReLU(0.2)

    def forward(self, x):
        x = (x - self.mean) / 0.5
        a, b = x[:, :1], x[:, 1:]
        y = torch.cat([b, a.clamp(-0.5, 0.7)], dim=1).permute(0, 2, 3, 1).contiguous()
        y = y.reshape(y.size(0), -1)
        y = F.dropout(self.prelu(y @ self.weight), 0.5, self.training)
        z = self.leaky(-y).abs() + torch.maximum(y, 0.1 * y) - torch.minimum(y, 2 - y)
        return z.mul(2.0).unsqueeze(1).squeeze(1) + F.relu6(3 * y) + y.mean(dim=1, keepdim=True)


def test_small_operations():
    check_agreement(Operations(), (3, 2, 2))


def test_adaptive_pooling_and_dropout():
    module = nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(3, 2),
    )
    check_agreement(module, (1, 6, 6))


def test_training_mode_is_read_as_evaluation_mode_and_left_alone():
    module = nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2)
    ).double()
    module(torch.randn(50, 3, dtype=torch.float64))
    module[3].eval()
    net = ReluNetwork.from_torch(module)
    assert [part.training for part in module] == [True, True, True, False, True]
    X = torch.randn(20, 3, dtype=torch.float64)
    np.testing.assert_allclose(net(X.numpy()), module.eval()(X).detach().numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("last", "name"),
    [(nn.Softmax(1), "softmax"), (nn.LogSoftmax(1), "log_softmax"), (nn.Sigmoid(), "sigmoid")],
)
def test_a_last_activation_is_cut_off_and_remembered(last, name):
    body = nn.Linear(3, 4).double()
    net = ReluNetwork.from_torch(nn.Sequential(body, last))
    assert net.output_activation == name
    X = torch.randn(5, 3, dtype=torch.float64)
    np.testing.assert_allclose(net(X.numpy()), body(X).detach().numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.GELU()), "'1' \\(GELU\\): GELU is not piecewise linear"),
        (nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 1)), "not piecewise linear"),
        (
            nn.Sequential(nn.Linear(3, 2)),
            r"module '0' \(Linear\) does not fit its input: a weight \(2, 3\)",
        ),
        (
            nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False)),
            "running statistics",
        ),
    ],
)
def test_what_cannot_be_read_is_named(module, words):
    with pytest.raises(UnsupportedModelError, match=words):
        ReluNetwork.from_torch(module, input_shape=(2,))


def test_untraceable_forward_and_missing_shape():
    class Branching(nn.Module):
        def forward(self, x):
            return x if x.sum() else -x

    class Comparing(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(UnsupportedModelError, match=r"cannot trace Branching.*torch\.onnx\.export"):
        ReluNetwork.from_torch(Branching(), input_shape=(2,))
    with pytest.raises(UnsupportedModelError, match=r"operation 'gt' .*compares computed tensors"):
        ReluNetwork.from_torch(Comparing(), input_shape=(2,))
    with pytest.raises(ValueError, match="input_shape"):
        ReluNetwork.from_torch(nn.Sequential(nn.Conv2d(1, 1, 2)))
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        ReluNetwork.from_torch("model.pt")


def test_to_torch_computes_the_network():
    net = check_agreement(
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)), (1, 4, 4)
    )
    X = np.random.default_rng(1).normal(size=(9, 1, 4, 4))
    np.testing.assert_allclose(net.to_torch()(torch.from_numpy(X)).detach().numpy(), net(X), atol=1e-12)
    assert ReluNetwork.from_torch(net.to_torch(), input_shape=(1, 4, 4)) == ReluNetwork.from_torch(
        net.to_torch(), input_shape=(1, 4, 4)
    )


# ---------------------------------------------------------------------- changes in place, hooks


class Forward(nn.Module):
    """A module whose forward is the given function of one hidden layer's output."""

    def __init__(self, function):
        super().__init__()
        self.linear, self.relu, self.function = nn.Linear(4, 4), nn.ReLU(inplace=True), function

    def forward(self, x):
        return self.function(self, self.linear(x))


def copy_then_change(module, h):
    kept = h.clone()
    return h.relu_() + kept


def add_in_place(module, h):
    kept = h
    h += 1.0
    h *= 2.0
    h -= 0.5
    h /= 3.0
    return F.relu(h) + kept


def change_twice(module, h):
    kept = module.relu(h)
    kept += 1.0
    return kept - 2.0 * h


@pytest.mark.parametrize("function", [copy_then_change, add_in_place, change_twice])
def test_changes_in_place_reach_all_names_and_no_copy(function):
    check_agreement(Forward(function), (4,))


def change_base(module, h):
    view = h.view(-1, 2, 2)
    h.relu_()
    return view.flatten(1)


def change_sibling(module, h):
    left, middle = h[:, :2], h[:, 1:3]
    return left.relu_() + middle


def change_before_cast(module, h):  # in float64 a copy, in float32 none
    cast = h.double()
    return module.relu(h) + cast


@pytest.mark.parametrize("function", [change_base, change_sibling, change_before_cast])
def test_changes_in_place_that_a_view_would_show_are_refused(function):
    with pytest.raises(UnsupportedModelError, match="in place"):
        ReluNetwork.from_torch(Forward(function), input_shape=(4,))


def test_an_input_may_have_the_name_of_a_method():
    class Named(nn.Module):
        def forward(self, view):
            y = view * 2.0
            return y.relu_() + view

    check_agreement(Named(), (4,))


@pytest.mark.parametrize("part", [0, 1, 3, None])
def test_hooks_that_may_change_the_function_are_refused(part):
    for register in ("register_forward_hook", "register_forward_pre_hook"):
        module = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2), nn.Softmax(1))
        getattr(module if part is None else module[part], register)(lambda *_: None)
        with pytest.raises(UnsupportedModelError, match="hooks"):
            ReluNetwork.from_torch(module)


@pytest.mark.parametrize("part", [0, None])
def test_a_replaced_forward_is_refused(part):
    module = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    (module if part is None else module[part]).forward = lambda x: 2.0 * x
    with pytest.raises(UnsupportedModelError, match="forward"):
        ReluNetwork.from_torch(module, input_shape=(2,))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["pruned", "weight norm", "spectral norm"])
def test_weights_that_forward_recomputes_are_not_read_stale(kind):
    linear = nn.Linear(4, 4).double()
    if kind == "pruned":
        prune.l1_unstructured(linear, "weight", amount=0.5)
    else:
        (nn.utils.weight_norm if kind == "weight norm" else nn.utils.spectral_norm)(linear)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.mul_(3.0)  # as an optimiser's last step would
    check_agreement(nn.Sequential(linear, nn.ReLU(), nn.Linear(4, 2)), (4,))


def test_the_module_is_left_as_it_was():
    class Remembering(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None

        def forward(self, x):
            self.last = self.extra = x * torch.tensor([1.0, 2.0])
            return self.last

    module = Remembering()
    before = dict(vars(module))
    ReluNetwork.from_torch(module, input_shape=(2,))
    assert vars(module) == before


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.Linear(3, 4), nn.Softmax(0)), (3,)),
        (nn.Sequential(nn.Conv2d(1, 2, 2), nn.LogSoftmax(1)), (1, 3, 3)),
        (nn.Sequential(nn.Linear(3, 4), nn.Softmax()), (2, 3)),
    ],
)
def test_only_a_last_softmax_over_all_outputs_is_cut_off(module, shape):
    with pytest.raises(UnsupportedModelError, match=r"Softmax\).*not piecewise linear"):
        check_model(module, shape).relu_network()


@pytest.mark.parametrize("bounds", [{"min": -1e30, "max": 1.0}, {"max": 1e30}, {"min": -1e12}])
def test_far_bounds_keep_the_digits(bounds):
    check_agreement(Forward(lambda module, h: torch.clamp(h, **bounds)), (4,))
    check_agreement(Forward(lambda module, h: torch.minimum(torch.full((4,), 1e30).double(), h)), (4,))


def test_sizes_that_divide_by_zero_are_named():
    with pytest.raises(UnsupportedModelError, match="AdaptiveAvgPool2d"):
        ReluNetwork.from_torch(nn.Sequential(nn.AdaptiveAvgPool2d(0)), input_shape=(1, 2, 2))


# ---------------------------------------------------------------------- compared with the module itself


def _small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU6(), nn.BatchNorm1d(4), nn.LeakyReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize("kind", [nn.Linear, nn.ReLU6, nn.BatchNorm1d, nn.LeakyReLU])
def test_a_fault_in_a_rule_is_noticed(kind, monkeypatch):
    module, right = _small(), torch_ops.MODULES[kind]
    assert Model.from_torch(module).out_features == 2
    wrong = lambda graph, part, x: graph.add(Scale(1 + 1e-6), right(graph, part, x))  # noqa: E731
    monkeypatch.setitem(torch_ops.MODULES, kind, wrong)
    with pytest.raises(UnsupportedModelError, match="Sequential was not read as what it is"):
        Model.from_torch(module)


def test_the_comparison_leaves_module_and_randomness_alone():
    module = nn.Sequential(_small(), nn.Dropout(0.5))
    module[0][2].eval()
    weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    modes = [part.training for part in module.modules()]
    torch.manual_seed(3)
    before = torch.get_rng_state()
    ReluNetwork.from_torch(module)
    assert torch.equal(before, torch.get_rng_state())
    assert modes == [part.training for part in module.modules()]
    for name, tensor in module.state_dict().items():
        assert tensor.dtype == weights[name].dtype and torch.equal(tensor, weights[name])


class _Dropping(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5)  # drops in evaluation mode too, which is easy to forget


def test_a_module_that_rolls_dice_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"'dropout'.*training=self.training"):
        ReluNetwork.from_torch(_Dropping(), input_shape=(8,))


class _Constant(nn.Module):
    """Holds a float32 matrix that is neither parameter nor buffer, so that it runs in float32 only."""

    def __init__(self):
        super().__init__()
        self.linear, self.matrix = nn.Linear(3, 3), torch.eye(3) * 0.7

    def forward(self, x):
        return torch.relu(self.linear(x) @ self.matrix)


def test_a_module_that_runs_in_float32_only_is_compared_there(monkeypatch):
    module = _Constant()
    assert ReluNetwork.from_torch(module).widths == (3, 3, 3)
    right = torch_ops.MODULES[nn.Linear]
    wrong = lambda graph, part, x: graph.add(Scale(1.01), right(graph, part, x))  # noqa: E731
    monkeypatch.setitem(torch_ops.MODULES, nn.Linear, wrong)
    with pytest.raises(UnsupportedModelError, match="was not read as what it is"):
        ReluNetwork.from_torch(module)


@pytest.mark.parametrize("last", [nn.Softmax(1), nn.LogSoftmax(1), nn.Sigmoid()])
def test_a_last_activation_is_compared_too(last):
    torch.manual_seed(0)
    assert ReluNetwork.from_torch(nn.Sequential(nn.Linear(3, 4), last)).output_activation


class _Shifted(nn.Module):
    def forward(self, x):
        return torch.clamp(x + 1e17, 0.0, 6.0), torch.maximum(x - 1e12, x)


@pytest.mark.parametrize("part, value", [(0, 6.0), (1, 0.3)])
def test_large_constants_before_a_clamp_and_a_maximum(part, value):
    class Part(_Shifted):
        def forward(self, x):
            return super().forward(x)[part]

    assert ReluNetwork.from_torch(Part(), input_shape=(1,))([0.3]) == value


# ---------------------------------------------------------------------- names, wrappers, what is said


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.SiLU())

    def forward(self, x, scale=None, *rest, **options):
        return x + self.body(x) if scale is None and not rest and not options else x * scale


def test_nodes_carry_the_path_and_type_of_their_module():
    model = Model.from_torch(nn.Sequential(Block(), nn.Linear(4, 2)))
    assert [node.name for node in model.nodes] == [
        "module '0.body.0' (Linear)",
        "module '0.body.1' (SiLU)",
        "operation 'add' in module '0' (Block)",
        "module '1' (Linear)",
    ]
    with pytest.raises(
        UnsupportedModelError, match=r"^module '0\.body\.1' \(SiLU\): SiLU is not piecewise linear"
    ):
        model.relu_network()


def test_a_module_that_is_called_twice_counts_once():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(self.linear(self.norm(self.linear(x))))

    assert check_counted(Twice(), (3,)).n_parameters == 12 + 6


def _check_unwrapped(compile):
    plain = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    wanted = Model.from_torch(plain)
    inner = nn.Sequential(plain[0], compile(plain[1]))
    for wrapped in (compile(plain), nn.DataParallel(plain), inner):
        model = Model.from_torch(wrapped)
        assert model == wanted
        assert [node.name for node in model.nodes] == [node.name for node in wanted.nodes]
    assert type(inner[1]).__name__ == "OptimizedModule"
    return plain, wanted


def test_wrappers_are_taken_off_and_put_back():
    class OptimizedModule(nn.Module):  # as torch.compile makes it, which takes seconds to load
        def __init__(self, module):
            super().__init__()
            self._orig_mod = module

    plain, wanted = _check_unwrapped(OptimizedModule)
    plain._compiled_call_impl = lambda *_: pytest.fail("compiled")  # as Module.compile sets it
    compiled = plain._compiled_call_impl
    assert Model.from_torch(plain) == wanted and plain._compiled_call_impl is compiled


@pytest.mark.slow
def test_compiled_modules_are_read():
    plain, wanted = _check_unwrapped(torch.compile)
    plain.compile()
    assert Model.from_torch(plain) == wanted and plain._compiled_call_impl is not None


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm", "orthogonal"])
def test_parametrised_weights_are_read(kind):
    linear = getattr(nn.utils.parametrizations, kind)(nn.Linear(4, 4).double().eval())
    check_model(nn.Sequential(linear, nn.ReLU(), nn.Linear(4, 2)), (4,))


def _scripted():
    return torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))


def _exported():
    return type("ExportedProgram", (), {})()  # a real one takes seconds


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_scripted, r"TorchScript module is not read.*torch\.onnx\.export"),
        (_exported, r"ExportedProgram is not read.*torch\.onnx\.export"),
        (lambda: nn.LazyLinear(3), "lazy layers have no weights yet"),
        (lambda: nn.Embedding(3, 4), r"the module \(Embedding\): it looks integers up in a table"),
        (lambda: nn.LSTM(2, 4), "must return one tensor.*tuple.*Wrap the module"),
        (lambda: nn.Bilinear(2, 2, 1), "does not fit its input"),
        (
            lambda: nn.Sequential(nn.Linear(2, 2), nn.Conv2d(1, 1, 2)),
            r"'1' \(Conv2d\): it takes a tensor with 4 axes",
        ),
        (lambda: nn.Fold(2, 2), "no rule for fold"),
        (lambda: nn.Sequential(nn.LocalResponseNorm(2)), r"module '0' \(LocalResponseNorm\)"),
        (lambda: nn.Sequential(nn.Hardshrink()), r"module '0' \(Hardshrink\): it jumps at 0.5"),
        (lambda: nn.Threshold(0.0, 1.0), "not continuous"),
    ],
)
def test_what_is_not_read_is_said_in_one_line_with_the_way_out(make, words):
    with pytest.raises(UnsupportedModelError, match=words) as caught:
        Model.from_torch(make(), (2,))
    assert "\n" not in str(caught.value)


def test_the_type_and_the_shape_are_remembered():
    for dtype, name in (
        (torch.float32, "float32"),
        (torch.float64, "float64"),
        (torch.bfloat16, "float32"),
    ):
        model = Model.from_torch(nn.Conv2d(1, 2, 2, dtype=dtype), (1, 3, 3))
        assert (model.dtype, model.input_shape, model.literal_shape) == (name, (1, 3, 3), (1, 1, 3, 3))


def test_dropout_in_place_changes_nothing_in_evaluation_mode():
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5, inplace=True)

        def forward(self, x):
            y = x * 2.0
            view = y.view(2, 2)
            return self.drop(y).view(2, 2) + view

    check_agreement(Views(), (4,))


def test_a_large_model_is_compared_too(monkeypatch):
    module = nn.Sequential(nn.Linear(1000, 1100), nn.ReLU(), nn.Linear(1100, 3))
    assert Model.from_torch(module).n_parameters > 1_000_000
    right = torch_ops.MODULES[nn.Linear]
    wrong = lambda graph, part, x: graph.add(Scale(1 + 1e-6), right(graph, part, x))  # noqa: E731
    monkeypatch.setitem(torch_ops.MODULES, nn.Linear, wrong)
    with pytest.raises(UnsupportedModelError, match="was not read as what it is"):
        Model.from_torch(module)
