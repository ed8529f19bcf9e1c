"""The built-in rules in Cedar, one file a subject."""
