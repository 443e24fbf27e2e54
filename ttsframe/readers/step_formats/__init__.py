"""One module per format of labeled steps."""
