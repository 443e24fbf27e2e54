"""LaTeX to expression trees: tokens, grammar, parser."""
