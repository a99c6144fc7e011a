"""The only importer of the Postgres driver: migrations, queries, writer, reader. Postgres is the durable record."""
