"""Who has an account, as far as somebody keeps a list of them."""
