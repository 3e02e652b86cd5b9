"""DP-SGD by Opacus, for `bandana audit-release`: the released parameters of a linear model.

In a single step all records are one batch, so nothing is sampled: a Gaussian mechanism of noise multiplier 4, for which the
RDP accountant of Opacus states epsilon 1.013 at delta 1e-5. A training takes two epochs of sampled batches.
"""

import logging
import warnings

import numpy as np
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader, TensorDataset

from bandana.primitives import price_steps

CLIP, NOISE = 1.0, 4.0

warnings.filterwarnings("ignore", message="Secure RNG|Full backward hook")
logging.getLogger("opacus").setLevel(logging.ERROR)
torch.set_num_threads(1)


def engine(data, seed):
    """A step as `PrivacyEngine` makes it, which divides by the number of records."""
    model, optimizer, batch = _parts(data, seed)
    loader = DataLoader(TensorDataset(batch), batch_size=len(batch))
    model, optimizer, _ = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=NOISE, max_grad_norm=CLIP
    )
    return _stepped(model, price_steps(optimizer), batch)


def public_size(data, seed):
    """The same step with an expected batch size of 2, which is public and does not follow the data."""
    model, optimizer, batch = _parts(data, seed)
    optimizer = DPOptimizer(optimizer, noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=2)
    return _stepped(GradSampleModule(model), price_steps(optimizer), batch)


def training(data, seed):
    """The parameters after two epochs of batches that hold each of 8 records with probability 1/4."""
    model, optimizer, records = _parts(data, seed)
    loader = DataLoader(TensorDataset(records), batch_size=2)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=2.0, max_grad_norm=CLIP
    )
    price_steps(optimizer)
    for _ in range(2):
        for (batch,) in loader:
            optimizer.zero_grad()
            released = _stepped(model, optimizer, batch)
    return released


def epsilon(delta, noise=NOISE, sample_rate=1.0, steps=1):
    """What Opacus' RDP accountant states."""
    accountant = PrivacyEngine(accountant="rdp").accountant
    for _ in range(steps):
        accountant.step(noise_multiplier=noise, sample_rate=sample_rate)
    return accountant.get_epsilon(delta)


def _parts(data, seed):
    torch.manual_seed(seed)
    batch = torch.tensor(np.asarray(data), dtype=torch.float32)
    model = torch.nn.Linear(batch.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    return model, torch.optim.SGD(model.parameters(), lr=1.0), batch


def _stepped(model, optimizer, batch):
    model(batch).mean().backward()
    optimizer.step()
    return next(model.parameters()).detach().numpy().ravel().copy()
