"""One module per format of trajectories."""
