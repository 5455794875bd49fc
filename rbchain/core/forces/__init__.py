"""Forces on joints and bodies: passive joint forces, external wrenches, signals, water."""
