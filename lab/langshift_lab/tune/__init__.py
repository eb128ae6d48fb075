"""``langshift vectors tune``: how far to shift documents, and whether queries too, by held-out parallel text."""
