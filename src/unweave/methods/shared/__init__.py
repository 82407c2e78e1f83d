"""What two or more methods need."""
