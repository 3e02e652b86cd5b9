"""The event of a Gaussian release is written in evidence: who asked for it first must not change its words."""

import numpy as np

from bandana.privacy_core.noise.mechanisms import gaussian_event


def test_an_event_has_the_same_words_whoever_asks_first():
    first = gaussian_event(np.float64(1.7320508075688772) * 3)
    assert repr(first) == repr(gaussian_event(5.196152422706632)) == "GaussianEvent(noise_multiplier=5.196152422706632)"
