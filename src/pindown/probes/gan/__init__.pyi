# What pindown.probes.gan offers; lazy.py reads this list.
from pindown.probes.gan.game import cross_entropy as cross_entropy
from pindown.probes.gan.game import gan_value as gan_value
from pindown.probes.gan.game import jensen_shannon as jensen_shannon
from pindown.probes.gan.game import optimal_discriminator as optimal_discriminator
from pindown.probes.gan.training import GanHistory as GanHistory
from pindown.probes.gan.training import train_gan as train_gan
