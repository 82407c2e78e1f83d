"""What a method is told and what it hands back."""
