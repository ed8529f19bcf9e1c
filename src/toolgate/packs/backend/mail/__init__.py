"""Mail: the port `Mailer`, its adapters, messages, templates and the queue."""
