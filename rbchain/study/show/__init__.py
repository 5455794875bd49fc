"""Display of a study: results as xarray datasets, plots, the report, and the progress bar."""
