"""Published results that are not run here: why, and what one needs.

An experiment that runs on other data or at another scale than the source is still run; what is here is
the part of it that cannot be: data nobody can download, hardware, animals.
"""

from __future__ import annotations

from pindown_reproduction.experiment import Declared

_ALL = (
    Declared(
        id="multi-exit-imagenet",
        title="Early exits on ImageNet (budget and anytime mode)",
        source="Phuong 2021, ImageNet parts of Tables 6.1 to 6.4",
        published="With 100 images per class distillation adds 3.7 points of top-5 accuracy at the "
        "first of five exits (64.4 to 68.1 in anytime mode) and 0.3 to 1.2 at the last two; on the "
        "full set it adds 1.0 at the first exit and loses 0.6 at the last.",
        why="ImageNet is not free to pass on, and five exits take days of several GPUs.",
        needs="ImageNet 2012 (registration at image-net.org), about 150 GB of disk, GPUs, and a network "
        "of the source's ImageNet size; pindown.learn.multi_exit trains any network with exits.",
        instead="multi-exit-budget, multi-exit-anytime",
    ),
    Declared(
        id="multi-exit-times-gpu",
        title="Inference times of exits on a GPU, and of the ImageNet network",
        source="Phuong 2021, GPU columns of Table E.1 and Table E.2",
        published="On a GPU the first of 11 exits takes 7 ms and the last 41 (45 with all heads); of "
        "the ImageNet network's five exits 27 and 57 ms, on a CPU 159 and 665.",
        why="it needs a GPU, and milliseconds of one card say nothing about another.",
        needs="a CUDA GPU; pindown.learn.multi_exit.profile_exits of a model and inputs there gives the "
        "table.",
        instead="multi-exit-times",
    ),
    Declared(
        id="mutual-autoencoder-reviews",
        title="Film reviews that come back",
        source="Phuong 2021, Figure 4.4, Tables 4.1 and 4.2",
        published="On sentences of at most eight words from IMDB reviews, exactly reconstructed "
        "sentences and matching words rise with the information asked for; M = 10 returns near copies. "
        "Sizes, optimiser and penalty are not printed.",
        why="the reviews are not part of the package, and judging paraphrases takes a reader.",
        needs="the Large Movie Review Dataset (ai.stanford.edu/~amaas/data/sentiment), split into "
        "sentences, and hours on a GPU.",
        instead="mutual-autoencoder-text",
    ),
    Declared(
        id="local-maxima-patients",
        title="Survival of 9,492 patients",
        source="Wolf et al. 2019, Table 4",
        published="The local correlation of h with survival is 0.076 (p = 0.021), of c and the rest not "
        "significant.",
        why="the table of patients, merged from many studies, is not public in the form that was used.",
        needs="that table from its authors, as arrays X, time and event; local-maxima-survival shows "
        "the protocol on three public tables.",
        instead="local-maxima-survival",
    ),
    Declared(
        id="texture-shape-imagenet",
        title="Texture against shape in networks trained on photographs",
        source="Lecture course, section on texture and shape (Geirhos et al. 2019)",
        published="Elephant skin: 81.4 % Indian elephant; a cat: 71.1 % tabby cat; a cat with elephant "
        "skin: 63.9 % Indian elephant, 26.4 % indri, 9.6 % black swan.",
        why="the network trained on ImageNet and the stylised photographs are not here.",
        needs="torchvision's weights and the stimuli of the model-vs-human toolbox; "
        "pindown.probes.shape_bias takes their decisions.",
        instead="texture-shape",
    ),
    Declared(
        id="essential-frequencies-animals",
        title="Do animals need the frequencies that networks need?",
        source="Lecture course, section on essential frequencies (proposed, not done)",
        published="Proposed: show animals images behind a network's mask, its complement and random "
        "masks, and compare their accuracy.",
        why="it takes animals or people who look at images.",
        needs="an experiment with ethics approval; pindown.probes.make_filtered_stimuli writes "
        "the images and their list.",
        instead="fourier-masks, frequency-loop",
    ),
    Declared(
        id="intrinsic-dimension-photographs",
        title="Intrinsic dimension along networks for photographs",
        source="Lecture course, slides on data manifolds, after Ansuini et al. 2019",
        published="In convolutional networks for photographs the dimension first rises and then falls "
        "along the layers, and is lower at the end of networks that predict better. A figure.",
        why="it takes networks trained on ImageNet and photographs to show them.",
        needs="torchvision's weights and some thousand images of ImageNet; "
        "pindown.bias.layer_dimensions runs on any torch module.",
        instead="intrinsic-dimension",
    ),
    Declared(
        id="illumination-faces",
        title="Signatures of faces under different lights",
        source="Lecture course, section on illumination",
        published="Distances of signatures within a face vanish, those between faces do not. A figure.",
        why="the faces are not named, and sets of faces are not free to pass on.",
        needs="faces under several lights, such as the Extended Yale Face Database B.",
        instead="illumination-signature",
    ),
)

DECLARED: dict[str, Declared] = {item.id: item for item in _ALL}
