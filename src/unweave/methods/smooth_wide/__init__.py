"""One smooth hidden layer with more units than derivatives show, grown under a falling ridge."""
