"""Analysis of a study: gradients, sensitivity indices, control variates, and the failed samples."""
