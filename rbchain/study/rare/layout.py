"""Names of the files of rare-event analyses, which a report reads without the packages that an analysis needs."""

FOLDER = "probability"  # in the folder of the results of a study; with a folder for each question
RESULT = "probability.json"
