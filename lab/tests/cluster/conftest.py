"""What tests of this folder share."""

import pytest
from small_dataset import write_small_dataset


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The folder of a small dataset, which tests only read."""
    made = tmp_path_factory.mktemp("dataset")
    write_small_dataset(made)
    return made
