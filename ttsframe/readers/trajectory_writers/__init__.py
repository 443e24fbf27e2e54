"""One module per format that trajectories are written in."""
