"""The parameters of a linear model after one step of Opacus, all records in one batch, and what its accountant states."""

import logging

import numpy as np
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import create_accountant
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader, TensorDataset

logging.disable(logging.WARNING)
torch.set_num_threads(1)
CLIP, DIMENSION = 1.0, 500


def step(data, seed, noise_multiplier):
    """Parameters after one step as `make_private` sets it up."""
    model, sgd, batch = parts(data, seed)
    model, optimizer, _ = PrivacyEngine().make_private(
        module=model,
        optimizer=sgd,
        data_loader=DataLoader(TensorDataset(batch), batch_size=len(batch)),
        noise_multiplier=noise_multiplier,
        max_grad_norm=CLIP,
    )
    return stepped(model, optimizer, batch)


def public_size(data, seed, noise_multiplier):
    """The same with an expected batch size of 2, which does not follow the data."""
    model, sgd, batch = parts(data, seed)
    optimizer = DPOptimizer(sgd, noise_multiplier=noise_multiplier, max_grad_norm=CLIP, expected_batch_size=2)
    return stepped(GradSampleModule(model), optimizer, batch)


def parts(data, seed):
    """A model at zero, its optimizer, and records; each number stands for so many times the same feature."""
    torch.manual_seed(seed)
    batch = torch.tensor(np.array(data, dtype=float), dtype=torch.float32)[:, None].repeat(1, DIMENSION)
    model = torch.nn.Linear(DIMENSION, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    return model, torch.optim.SGD(model.parameters(), lr=1.0), batch


def stepped(model, optimizer, batch):
    """The parameters after one step."""
    model(batch).mean().backward()
    optimizer.step()
    return next(model.parameters()).detach().numpy().ravel()


def state(release, noise_multiplier):
    """What the RDP accountant of Opacus states for the step at delta 1e-5."""
    accountant = create_accountant("rdp")
    accountant.step(noise_multiplier=noise_multiplier, sample_rate=1.0)
    return f"approx(epsilon={accountant.get_epsilon(1e-5)}, delta=1e-5)"
