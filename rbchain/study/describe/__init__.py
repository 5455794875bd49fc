"""Description of a study: the keys of `study.toml`, with the distributions, designs and measures that it can name."""
