"""Store of a study: the files of the results, their checksums and their repair."""
