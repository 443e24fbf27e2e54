"""The shape of an answer: scalars, lists, sets, intervals, relations, matrices, words."""
