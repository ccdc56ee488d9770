"""The zoo's files, made once and kept among pytest's own."""

import pytest

from tests.zoo.exports import Shelf


@pytest.fixture(scope="session")
def shelf(request, tmp_path_factory):
    """The files of the zoo."""
    cache = getattr(request.config, "cache", None)
    return Shelf(cache.mkdir("zoo") if cache else tmp_path_factory.mktemp("zoo"))
