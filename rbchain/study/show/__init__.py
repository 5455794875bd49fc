"""Display of a study: results as xarray datasets, pictures, the report, and the progress bar."""
