"""First-order methods: accelerated gradient, RMSProp and Adam, their steps, and a record of a descent."""
