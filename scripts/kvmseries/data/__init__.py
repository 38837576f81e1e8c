"""What was measured or published: files, their schema, figures in them, and what they are ids of."""
