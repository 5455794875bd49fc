"""The measure of the study of a door."""


def overshoot(model, motion):
    """Return how far each sample swings beyond the closed position, (samples,), rad."""
    return -motion.q[:, :, 0].min(axis=1).clip(max=0.0)
