"""What reports, batch jobs and the command line do when little is said: selectors, budgets, tables."""
