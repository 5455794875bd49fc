"""Forces on joints and bodies: springs, friction and stops, external wrenches, water."""
