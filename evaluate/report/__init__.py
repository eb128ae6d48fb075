"""A report on replays: one page of HTML, and tables for other documents."""
