"""Releases that show the data in the form of an output, or where no text shows it."""

from __future__ import annotations

import datetime
import decimal
import fractions
from dataclasses import dataclass, field

import numpy as np
from exhibits import bit, broken, honest, noisy
from numpy.random import default_rng


class Fitted:
    """An estimator; its text shows none of its state."""

    def __init__(self, shown, **kept):
        self.mean_ = shown
        self.__dict__.update(kept)

    def __repr__(self):
        return "Fitted()"


class Slotted:
    __slots__ = ("__exact", "shown")

    def __init__(self, shown, exact):
        self.shown, self.__exact = shown, exact

    def exact(self):
        return self.__exact


@dataclass
class Summary:
    shown: float
    exact: int = field(repr=False)


class FailedError(ValueError):
    """An error that carries more than its text."""

    def __init__(self, exact):
        super().__init__("the sum is out of range")
        self.exact = exact


@broken(lambda output: output.exact_ == 1)
def attribute_of_an_estimator(data, seed):
    return Fitted(noisy(data, default_rng(seed)), exact_=bit(data))


@broken(lambda output: output.inner["fit"].coef_[2] > 0.5)
def attribute_of_an_attribute(data, seed):
    rng = default_rng(seed)
    coefs = np.array([0, 0, bit(data)]) + 0.01 * rng.normal(size=3)
    return Fitted(noisy(data, rng), inner={"fit": Fitted(0.0, coef_=coefs)})


@broken(lambda output: output.exact() == 1)
def hidden_slot(data, seed):
    return Slotted(noisy(data, default_rng(seed)), bit(data))


@broken(lambda output: output.exact == 1)
def field_without_text(data, seed):
    return Summary(noisy(data, default_rng(seed)), bit(data))


@broken(lambda output: output["key579"] > 0.5)
def key_580(data, seed):
    values = default_rng(seed).laplace(size=600)
    values[579] = bit(data) + values[579] / 100
    return {f"key{place}": float(value) for place, value in enumerate(values)}


@broken(lambda output: float(output.split(",")[80]) > 0.5)
def number_81_of_a_line(data, seed):
    values = default_rng(seed).laplace(size=100)
    values[80] = bit(data) + values[80] / 100
    return ",".join(f"{value:.4f}" for value in values)


@broken(lambda output: output[0][600] > 0.5)
def element_600(data, seed):
    values = default_rng(seed).laplace(size=700)
    values[600] = bit(data) + values[600] / 100
    return values.tolist(), "done"


@broken(lambda output: output.dtype == np.float32)
def type_of_numbers(data, seed):
    return (bit(data) + default_rng(seed).laplace(size=3)).astype(np.float32 if bit(data) else np.float64)


@broken(lambda output: output.dtype.str == ">f8")
def order_of_bytes(data, seed):
    return (bit(data) + default_rng(seed).laplace(size=1)).astype(">f8" if bit(data) else "<f8")


@broken(lambda output: output[1].shape == (0, 1))
def shape_of_nothing(data, seed):
    return [noisy(data, default_rng(seed)), np.zeros((0, bit(data)))]


@broken(lambda output: bool(np.signbit(output[1])))
def sign_of_zero(data, seed):
    return np.array([noisy(data, default_rng(seed)), -0.0 if bit(data) else 0.0])


@broken(lambda output: type(output[1]) is bool)
def kind_of_a_number(data, seed):
    return [noisy(data, default_rng(seed)), True if bit(data) else 1]


@broken(lambda output: isinstance(output, tuple))
def kind_of_a_list(data, seed):
    found = [noisy(data, default_rng(seed))]
    return tuple(found) if bit(data) else found


@broken(lambda output: next(iter(output)) == "b")
def order_of_keys(data, seed):
    x = noisy(data, default_rng(seed))
    return {"b": 0, "a": x} if bit(data) else {"a": x, "b": 0}


@broken(lambda output: next(iter(output)) == 1)
def kind_of_a_key(data, seed):
    return {(1 if bit(data) else "1"): noisy(data, default_rng(seed))}


@broken(lambda output: output[11] in "abcde")
def letter_of_a_word(data, seed):
    letters = default_rng(seed).integers(0, 5, 24) + 5
    letters[11] -= 5 * bit(data)
    return "".join("abcdefghij"[letter] for letter in letters)


@broken(lambda output: output[7] >= 128)
def byte_of_a_message(data, seed):
    shown = default_rng(seed).integers(0, 256, 16)
    shown[7] = shown[7] % 128 + 128 * bit(data)
    return bytes(shown.tolist())


@broken(lambda output: output % 2 == 1)
def last_bit_of_a_large_integer(data, seed):
    return 2**60 + 2 * int(default_rng(seed).integers(0, 2**58)) + bit(data)


@broken(lambda output: output.as_tuple().digits[-1] == 1)
def last_digit_of_a_decimal(data, seed):
    return decimal.Decimal(f"1.{default_rng(seed).integers(10**16, 10**17)}{'0' * 8}{bit(data)}")


@broken(lambda output: output.denominator % 2 == 0)
def denominator(data, seed):
    odd = 2 * int(default_rng(seed).integers(1, 2**40)) + 1
    return fractions.Fraction(odd, (1 + bit(data)) * 2**30 - 1 + bit(data))


@broken(lambda output: output.microsecond % 2 == 1)
def microsecond_of_a_date(data, seed):
    passed = 2 * int(default_rng(seed).integers(0, 10**12)) + bit(data)
    return datetime.datetime(2020, 1, 1) + datetime.timedelta(microseconds=passed)


@broken(lambda output: getattr(getattr(output, "error", None), "exact", 0) == 1, rarest=0.6)
def attribute_of_an_exception(data, seed):
    rng = default_rng(seed)
    if rng.random() < 0.7:
        raise FailedError(bit(data))
    return noisy(data, rng)


@broken(lambda output: output(0) == 1)
def variable_of_a_function(data, seed):
    exact = bit(data)
    return lambda place: exact


@broken(lambda output: isinstance(output[1], float))
def missing_number(data, seed):
    return [noisy(data, default_rng(seed)), float("nan") if bit(data) else None, float("nan")]


@broken(lambda output: output.get("label") == "rare", rarest=0.005)
def rare_label(data, seed):
    rng = default_rng(seed)
    return {"mean": noisy(data, rng), "label": "rare" if bit(data) and rng.random() < 0.005 else "common"}


@honest
def estimator(data, seed):
    return Fitted(noisy(data, default_rng(seed)), n_=3, inner={"fit": Fitted(0.0, coef_=np.zeros(3))})


@honest
def many_keys(data, seed):
    values = default_rng(seed).laplace(size=600)
    values[579] += bit(data)
    return {f"key{place}": float(value) for place, value in enumerate(values)}


@honest
def long_line(data, seed):
    values = default_rng(seed).laplace(size=100)
    values[80] += bit(data)
    return ",".join(f"{value:.6f}" for value in values)


@honest
def single_precision(data, seed):
    return np.float32(noisy(data, default_rng(seed)))


@honest
def random_word(data, seed):
    rng = default_rng(seed)
    return {"token": "".join(rng.choice(list("abcdefghij"), 24)), "mean": noisy(data, rng)}


@honest
def nothing_but_missing_numbers(data, seed):
    return [float("nan"), 3.0]


@honest
def fails_now_and_then(data, seed):
    rng = default_rng(seed)
    if rng.random() < 0.2:
        raise ValueError("no answer today")
    return noisy(data, rng)


@honest
def of_changing_length(data, seed):
    rng = default_rng(seed)
    return [noisy(data, rng), *rng.normal(size=int(rng.integers(0, 4))).tolist()]


@honest
def date_with_noise(data, seed):
    return datetime.datetime(2020, 1, 1) + datetime.timedelta(days=noisy(data, default_rng(seed)))
