# What pindown.bias.separability offers; lazy.py reads this list.
from pindown.bias.separability.class_vectors import ClassMargins as ClassMargins
from pindown.bias.separability.class_vectors import class_margins as class_margins
from pindown.bias.separability.layers import layer_separability as layer_separability
from pindown.bias.separability.orthogonal import OrthogonalSeparability as OrthogonalSeparability
from pindown.bias.separability.orthogonal import orthogonal_separability as orthogonal_separability
from pindown.bias.separability.sectors import Extremes as Extremes
from pindown.bias.separability.sectors import early_potential as early_potential
from pindown.bias.separability.sectors import extremal_directions as extremal_directions
from pindown.bias.separability.sectors import search_extremal_directions as search_extremal_directions
from pindown.bias.separability.sectors import sector as sector
