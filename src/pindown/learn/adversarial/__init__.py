"""Generative adversarial networks: the value of the game, its exact optimum, and training."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.learn.adversarial.game import cross_entropy as cross_entropy
    from pindown.learn.adversarial.game import gan_value as gan_value
    from pindown.learn.adversarial.game import jensen_shannon as jensen_shannon
    from pindown.learn.adversarial.game import optimal_discriminator as optimal_discriminator
    from pindown.learn.adversarial.training import GanHistory as GanHistory
    from pindown.learn.adversarial.training import train_gan as train_gan

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "game": "cross_entropy gan_value jensen_shannon optimal_discriminator",
        "training": "GanHistory train_gan",
    },
)
