"""Run of a study: chunks of samples in threads, processes or on a cluster, and the statistics so far."""
