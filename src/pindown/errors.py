"""What can be wrong with what a user hands in, one class per remedy."""


class ModelFileError(ValueError):
    """The file is missing, damaged, too large, or not a model file at all."""


class UnsupportedModelError(ValueError):
    """The model is sound but is not a ReLU network that pindown can write down exactly."""


class DataFileError(ValueError):
    """The data file is missing, damaged, or does not hold the arrays that are needed."""


class PropertyFileError(ValueError):
    """The property file is missing, damaged, or says what cannot be read: where, and what."""


class CertificateError(ValueError):
    """A certificate is damaged, is about something else, or cannot be written: why."""


class ParameterError(ValueError, TypeError):
    """A parameter that cannot be used; both a ValueError and a TypeError, as in scikit-learn."""
