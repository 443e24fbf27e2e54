"""One module per format of labelled steps."""
