"""The gate's own database: engine, tables, transactions, migrations."""
