"""Where the pack keeps what was published: tables, statements, and how rows are stored."""
