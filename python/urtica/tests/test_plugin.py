"""The pytest plugin."""

TEST = """
import urtica

class Faulty(urtica.App):
    def packet_in(self, switch, packet):
        raise ValueError("on purpose")

def test_seed(net, urtica_seed):
    assert net("single,1", app=urtica.App).seed == urtica_seed == {seed}

def test_faulty(net):
    net("single,2", app=Faulty).ping("h1", "h2")
"""


def test_the_seed_is_that_of_the_option(pytester):
    pytester.makepyfile(TEST.format(seed=42))
    result = pytester.runpytest_subprocess("--urtica-seed=42", "-k", "test_seed")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["urtica: --urtica-seed=42"])


def test_a_seed_is_drawn_and_told(pytester):
    pytester.makepyfile("def test_nothing(net): pass")
    result = pytester.runpytest_subprocess("--urtica-seed=random")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"urtica: --urtica-seed=\d+"])


def test_an_exception_in_a_handler_fails_the_test(pytester):
    pytester.makepyfile(TEST.format(seed=0))
    result = pytester.runpytest_subprocess("-k", "test_faulty")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ValueError: on purpose"])
