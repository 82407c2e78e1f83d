"""Networks with several smooth hidden layers: recovery layer by layer from queries."""
