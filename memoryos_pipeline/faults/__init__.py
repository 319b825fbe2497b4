"""Faults on purpose: a system of real processes, what is done to it, and whether anything was lost or doubled."""
