"""Which function is it? Its parts, the inputs it uses, its linear regions, what could be left out."""
