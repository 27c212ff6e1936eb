"""Golden vectors and what makes them; see README.md. Nothing here imports the product."""
