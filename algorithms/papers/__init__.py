"""The formulas for noise that papers print, one file a paper; `readings` holds what they can mean beyond what is built."""
