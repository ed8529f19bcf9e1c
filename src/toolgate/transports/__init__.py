"""Ways in. Each makes a `Call`, and words the `Outcome` in its protocol."""
