"""The pytest plugin: the fixture `net`, and the option --urtica-seed."""

import secrets

import pytest

from urtica import Net


def _seed(text):
    return secrets.randbits(32) if text == "random" else int(text, 0)


def pytest_addoption(parser):
    group = parser.getgroup("urtica", "Urtica: networks in the process")
    group.addoption(
        "--urtica-seed",
        type=_seed,
        default=0,
        metavar="N",
        help="the seed of the networks of the fixture `net`, or `random` (default: 0)",
    )


def pytest_report_header(config):
    return f"urtica: --urtica-seed={config.getoption('urtica_seed')}"


@pytest.fixture
def urtica_seed(request):
    """The seed of --urtica-seed."""
    return request.config.getoption("urtica_seed")


@pytest.fixture
def net(urtica_seed):
    """Makes networks, with the arguments of Net; the seed is that of --urtica-seed unless one is given.

    They are stopped at the test's end. The test fails if a handler has raised an exception, unless the test has taken it with take_exceptions().
    """
    nets = []

    def make(topology, app, **options):
        made = Net(topology, app, **{"seed": urtica_seed, **options})
        nets.append(made)
        return made

    yield make
    for made in nets:
        made.stop()
    for error in [error for made in nets for error in made.take_exceptions()]:
        raise error
