"""Results that were published elsewhere and that the library reaches."""
