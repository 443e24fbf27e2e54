"""The shapes of answers: scalars, lists, sets, intervals, relations, matrices, words."""
