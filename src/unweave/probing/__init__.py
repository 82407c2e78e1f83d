"""What a first look at a target shows: noise, region, kinks, labels, output links, far field."""

__all__ = ["answer_range", "crossings", "far_look", "labels", "lines", "look", "noise", "region_search"]
