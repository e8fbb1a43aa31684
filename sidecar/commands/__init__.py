"""Commands of model-probe that are more than a start: one file each."""
