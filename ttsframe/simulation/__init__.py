"""Simulated runs with known properties."""

from __future__ import annotations

from ttsframe.simulation.trajectories import simulate_trajectories

__all__ = ["simulate_trajectories"]
