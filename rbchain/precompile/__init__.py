"""Compile drivers before they are needed: which ones a program or a study calls, and compilation in processes."""
