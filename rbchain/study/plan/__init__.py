"""Plan of a study: the description checked against its model, and the computation of a range of samples."""
