"""Random cases: every one of them must end in a correct result, a specific error or a status."""
