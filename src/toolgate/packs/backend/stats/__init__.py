"""How many users, subscriptions and notifications there are.

`counting` says what a document counts for, `counters` what tools ask; `sql/counts.py` keeps the
numbers by following the change log.
"""
