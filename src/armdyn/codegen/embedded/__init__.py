"""Relocatable objects for processors of controllers, made by LLVM without a cross compiler."""
