"""What acts on a mechanism over time: drives, wrenches, events; and the signals they follow."""
