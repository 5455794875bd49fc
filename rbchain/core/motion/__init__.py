"""The motion of samples: steps, events, contacts, sampled controllers, and saved states."""
