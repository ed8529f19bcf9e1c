"""toolgate: one governed door between AI agents and an application's backend."""
