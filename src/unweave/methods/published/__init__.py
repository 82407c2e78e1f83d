"""The published algorithms for one smooth hidden layer as a method of recovery."""
