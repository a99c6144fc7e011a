"""The SDK over HTTP, synchronous and asynchronous; imports neither store nor ledger."""
