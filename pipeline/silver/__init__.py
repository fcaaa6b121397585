"""Lines as typed rows; what cannot be read, and what was there twice, is told apart."""
