"""Which cases are left to the long run."""

from durations import LIST, long_tests, longest


def test_the_longest_go_until_the_rest_is_short():
    seconds = {"a::x[1]": 5.0, "a::x[2]": 4.0, "a::y": 3.0, "a::z": 0.5}
    assert longest(seconds, 100) == []
    assert longest(seconds, 8) == ["a::x[1]"]
    assert longest(seconds, 5) == ["a::x[1]", "a::y"]


def test_one_case_of_every_function_stays():
    assert longest({"a::x[1]": 5.0, "a::x[2]": 4.0}, 0) == ["a::x[1]"]


def test_listed_cases_are_there():
    for name in long_tests():
        module, _, case = name.partition("::")
        file = LIST.parent / (module.replace(".", "/") + ".py")
        assert f"def {case.partition('[')[0]}(" in file.read_text(), name
