"""Releases that hide the data in what holds an output: subclasses, defaults, states, coded text."""

from __future__ import annotations

import base64
import enum
import functools
import io
import json
import pickle
import struct
import zlib

import numpy as np
import pandas as pd
from exhibits import bit, broken, honest, noisy
from numpy.random import default_rng
from scipy import sparse


class Number(float):
    """A number with more than its value."""


class Level(enum.Enum):
    LOW, HIGH = "low", "high"


@broken(lambda output: output.exact == 1)
def attribute_of_a_number(data, seed):
    output = Number(noisy(data, default_rng(seed)))
    output.exact = bit(data)
    return output


@broken(lambda output: output.args[0] == 1)
def argument_kept_for_later(data, seed):
    return functools.partial(print, bit(data), noisy(data, default_rng(seed)))


@broken(lambda output: output.attrs["n"] == 1)
def remark_on_a_table(data, seed):
    table = pd.DataFrame({"mean": [noisy(data, default_rng(seed))]})
    table.attrs["n"] = bit(data)
    return table


@broken(lambda output: output.index[0] == 1)
def name_of_a_row(data, seed):
    return pd.Series([noisy(data, default_rng(seed))], index=[bit(data)])


@broken(lambda output: output.data[1] == 1)
def number_under_a_mask(data, seed):
    return np.ma.masked_array([noisy(data, default_rng(seed)), bit(data)], mask=[False, True])


@broken(lambda output: output.nnz == 2)
def zero_that_is_stored(data, seed):
    places = np.arange(1 + bit(data))
    values = np.r_[noisy(data, default_rng(seed)), np.zeros(bit(data))]
    return sparse.csr_matrix((values, (0 * places, places)), shape=(1, 2))


@broken(lambda output: output.tell() == 1)
def position_in_a_file(data, seed):
    stream = io.BytesIO(struct.pack("d", noisy(data, default_rng(seed))))
    stream.seek(bit(data))
    return stream


@broken(lambda output: struct.unpack("dd", base64.b64decode(output))[1] == 1)
def number_in_coded_text(data, seed):
    return base64.b64encode(struct.pack("dd", noisy(data, default_rng(seed)), bit(data))).decode()


@broken(lambda output: json.loads(zlib.decompress(output))["exact"] == 1)
def number_in_packed_text(data, seed):
    return zlib.compress(json.dumps({"exact": bit(data), "mean": noisy(data, default_rng(seed))}).encode(), 0)


@broken(lambda output: pickle.loads(output)[1] == 1)
def number_in_a_pickle(data, seed):
    return pickle.dumps((noisy(data, default_rng(seed)), bit(data)))


@broken(lambda output: output[1] is Level.HIGH)
def level_by_name(data, seed):
    return noisy(data, default_rng(seed)), (Level.LOW, Level.HIGH)[bit(data)]


@broken(lambda output: 1.0 in output)
def member_of_a_set(data, seed):
    return {noisy(data, default_rng(seed)), float(bit(data))}


@broken(lambda output: output.imag == 1)
def imaginary_part(data, seed):
    return complex(noisy(data, default_rng(seed)), bit(data))


@broken(lambda output: "e" in output)
def way_to_write_a_number(data, seed):
    value = noisy(data, default_rng(seed))
    return f"{value:e}" if bit(data) else f"{value:f}"


@honest
def table_with_noise(data, seed):
    rng = default_rng(seed)
    return pd.DataFrame({"group": ["a", "b"], "mean": [noisy(data, rng), float(rng.laplace())]})


@honest
def text_of_noise(data, seed):
    return json.dumps({"mean": noisy(data, default_rng(seed)), "version": 3})


@honest
def packed_noise(data, seed):
    """In single precision: all 64 bits would show on which grid the noise was added."""
    return base64.b64encode(struct.pack("f", noisy(data, default_rng(seed)))).decode()


@honest
def set_of_noise(data, seed):
    return {noisy(data, default_rng(seed)), 7.0}


@broken(lambda output: output.exact == 1)
def attribute_of_a_class(data, seed):
    return type("Result", (), {"exact": bit(data)})()


@broken(lambda output: output.exact == 1)
def property_of_a_class(data, seed):
    value, exact = noisy(data, default_rng(seed)), bit(data)

    class Result:
        mean = value

        @property
        def exact(self):
            return exact

    return Result()


@broken(lambda output: output() == 1)
def constant_of_a_function(data, seed):
    return eval(f"lambda: {bit(data)}")


@honest
def class_made_in_a_call(data, seed):
    class Result:
        version = 3

        def __init__(self, mean):
            self.mean = mean

    return Result(noisy(data, default_rng(seed)))
