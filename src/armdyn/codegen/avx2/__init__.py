"""Straight-line code written for AVX2: instruction selection, list scheduling, register allocation."""
