"""What Python calls: loops over blocks of lanes, and threads."""
