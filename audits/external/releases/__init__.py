"""Audits of any release, a function of a data set that returns numbers, labels or text, on one given pair of data sets."""
