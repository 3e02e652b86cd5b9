"""The refutation campaign: claims of released or published code, each audited through real runs of that code.

A folder of `experiments/refutations` is a case: what is claimed, in which pinned packages, on which neighbors. `bandana
refute` installs the packages apart from this product's own, runs their code there as a program, and audits here.
"""
