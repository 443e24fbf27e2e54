"""LaTeX to expression trees: tokens, parser, tree."""
