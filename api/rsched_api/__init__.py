"""The HTTP API: a Starlette app over the store and the ledger. Scripts and the ledger hold the promises; this asks them."""
