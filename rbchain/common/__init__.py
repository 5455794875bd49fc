"""What all packages share: conversions of numbers, names, files and processes."""
