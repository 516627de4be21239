"""What a native model is made of, derived from the model alone: its stack, its kinds of blocks and their sublayers."""
