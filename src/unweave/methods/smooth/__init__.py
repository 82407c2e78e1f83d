"""One smooth hidden layer from precise answers, through its derivatives."""
