"""The description of a mechanism by named bodies, joints and frames, and its conversion to arrays."""
