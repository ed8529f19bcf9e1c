"""Skills: texts that agents read as instructions, and what keeps bad ones out."""
