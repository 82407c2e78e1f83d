"""The front door: recover, plan, judge, certificate and result."""
