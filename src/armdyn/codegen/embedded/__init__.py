"""Relocatable objects for embedded processors, compiled by LLVM without a cross compiler."""
