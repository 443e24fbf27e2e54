"""The engine shared by all readers: find files, recognise the format, read tables lazily."""
