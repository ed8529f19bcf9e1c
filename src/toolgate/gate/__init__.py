"""The one path a call takes. Read `pipeline.py` first."""
