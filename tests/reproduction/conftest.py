"""These tests need the distribution in reproduction/, which ``make test`` installs."""

import pytest

pytest.importorskip("pindown_reproduction")
