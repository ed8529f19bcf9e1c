"""What every document store promises, whatever it is made of: a module for each part of it.

A case is an async function that takes a `Room`: a store with a collection nobody else uses.
"""
