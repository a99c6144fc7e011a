"""What the API reads: lists and look-ups, newest first, in keyset pages with opaque cursors.

Authority: the tables that write/ keeps; nothing is remembered between two calls. It trusts their rows, which were checked
when they were written, and no cursor, which a caller may have made up. It fails as Unavailable, and as Invalid for such a
cursor.
"""
