"""Scale, bias and outgoing weights of smooth units from their profiles."""
